"""Node with the packages of `tests/integration/js`, for clients in JavaScript."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from process import program

SCRIPTS = Path(__file__).parents[2] / "js"


@pytest.fixture(scope="module")
def node() -> str:
    """Return the path of Node, after installing the packages of package-lock.json."""
    found = program("Node.js is not installed: apt-get install nodejs npm", "node")
    installed = SCRIPTS / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (SCRIPTS / "package-lock.json").stat().st_mtime:
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return found


def run_script(
    node: str, script: str, arguments: list[str], lines: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Run a script with lines of JSON as its input; return the lines of JSON that it prints."""
    done = subprocess.run(
        [node, script, *arguments],
        cwd=SCRIPTS,
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]
