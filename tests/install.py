"""Install packages with uv, or with pip where uv cannot; for `make setup`, so of the standard library.

    python tests/install.py UV PYTHON ARGUMENTS...

Progress is one line in a terminal that changes; elsewhere, only results are printed.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from typing import TextIO


def main(uv: str, python: str, arguments: list[str]) -> int:
    """Return the exit status of uv, or that of pip after uv has failed."""
    environment = os.environ | {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", "")}
    command = [uv, "pip", "install", "--python", python, "--no-deps", *arguments]
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running:
            assert running.stdout
            show(running.stdout, sys.stdout, is_terminal=sys.stdout.isatty())
        if running.returncode == 0:
            return 0
    except OSError as error:
        sys.stdout.write(f"{error}\n")
    sys.stdout.write("uv cannot install these packages: pip does, which takes some minutes\n")
    sys.stdout.flush()
    return subprocess.call([python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", *arguments])


def show(lines: Iterable[str], out: TextIO, *, is_terminal: bool) -> None:
    """Write each line over the one before it; leave out the list of packages."""
    width = 0
    for line in map(str.strip, lines):
        if not line or line.startswith(("+ ", "- ", "~ ")):
            continue
        if is_terminal and not line.startswith(("error:", "×", "╰", "├", "│")):
            out.write(f"\r{line:<{width}}")
            width = len(line)
        elif is_terminal or not line.startswith(("Downloading", "Downloaded", "Using Python")):
            out.write(f"\n{line}" if width else f"{line}\n")
        out.flush()
    if width:
        out.write("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
