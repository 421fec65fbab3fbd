"""The page that is kept is the one that its sources make."""

import subprocess
from pathlib import Path

import pytest
from page_fixture import install_page_tools

pytestmark = pytest.mark.integration


def test_the_kept_files_are_what_the_sources_build() -> None:
    install_page_tools()
    root = Path(__file__).parents[2]
    done = subprocess.run(["make", "check-page"], cwd=root, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
