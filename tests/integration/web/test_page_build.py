"""The page that is kept is the one that its sources make."""

import subprocess
from pathlib import Path

import pytest
from page_fixture import installing


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("npm")
def test_page_sources_pass_lint_and_build_the_committed_files() -> None:
    root = Path(__file__).parents[3]
    with installing():
        done = subprocess.run(["make", "check-page"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
