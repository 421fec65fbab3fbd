"""Print the options that let pip and uv find PyTorch's CPU build.

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


def find_cpu_wheel(links: list[str], python: tuple[int, int]) -> Path | None:
    """Return the local folder among the links that holds PyTorch's CPU build for this Python."""
    pattern = f"torch-*+cpu-cp{python[0]}{python[1]}-*.whl"
    folders = [Path(unquote(urlparse(link).path)) for link in links if urlparse(link).scheme in {"", "file"}]
    return next((folder for folder in folders if any(folder.glob(pattern))), None)


def index_options() -> list[str]:
    """Return the options for `pip install` of a lock that pins torch."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, no input
    folder = find_cpu_wheel(configured_links(listed.stdout), sys.version_info[:2])
    if folder is not None:  # uv does not read the configuration of pip
        return ["--find-links", str(folder)]
    return ["--extra-index-url", CPU_INDEX]


if __name__ == "__main__":
    sys.stdout.write(" ".join(index_options()))
