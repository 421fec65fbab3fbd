"""Prints the option that lets pip find PyTorch's CPU build, and nothing where pip finds it already.

Only the standard library: `make setup` runs this file before anything else is installed.
"""

import ast
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def configured_links(pip_config: str) -> list[str]:
    """Return the places named by find-links in the output of `pip config list`, which covers files and environment."""
    values = [
        value for key, _, value in (line.partition("=") for line in pip_config.splitlines()) if "find-links" in key
    ]
    return [link for value in values for link in str(ast.literal_eval(value)).split()]


def has_cpu_wheel(links: list[str], python: tuple[int, int]) -> bool:
    """Return whether a local folder among the links holds PyTorch's CPU build for this Python."""
    pattern = f"torch-*+cpu-cp{python[0]}{python[1]}-*.whl"
    folders = [Path(unquote(urlparse(link).path)) for link in links if urlparse(link).scheme in {"", "file"}]
    return any(any(folder.glob(pattern)) for folder in folders)


def index_options() -> list[str]:
    """Return the options for `pip install` of a lock that pins torch."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, no input
    if has_cpu_wheel(configured_links(listed.stdout), sys.version_info[:2]):
        return []
    return ["--extra-index-url", CPU_INDEX]


if __name__ == "__main__":
    sys.stdout.write(" ".join(index_options()))
