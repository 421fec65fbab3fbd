"""Installation by `make setup`: progress in one line, and pip where uv cannot install."""

import io
import subprocess
import sys
from pathlib import Path

from install import show

UV = [
    "Using Python 3.11 environment at .venv",
    "Downloading torch (180 MiB)",
    "Prepared 2 packages in 3s",
    " + torch==2.13.0",
    "",
]


def test_progress_elsewhere_is_only_the_result() -> None:
    out = io.StringIO()
    show(UV, out, is_terminal=False)
    assert out.getvalue() == "Prepared 2 packages in 3s\n"


def test_pip_installs_where_uv_cannot(tmp_path: Path) -> None:
    pip = tmp_path / "pip-python"
    pip.write_text('#!/bin/sh\necho "$@"\n')
    pip.chmod(0o755)
    script = Path(__file__).with_name("install.py")
    command = [sys.executable, str(script), str(tmp_path / "no-uv"), str(pip), "-r", "some.lock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [
        "uv cannot install these packages: pip does, which takes some minutes",
        "-m pip install --quiet --no-compile --no-deps -r some.lock",
    ]
