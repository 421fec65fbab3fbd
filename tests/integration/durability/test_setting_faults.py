import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{.ipynb: NotebookLoader}", "as JSON"),
        pytest.param('{"ipynb": "NotebookLoader"}', "'ipynb' is not a file suffix", marks=pytest.mark.nightly),
        pytest.param('{".ipynb": "NotebokLoader"}', "Did you mean NotebookLoader?", marks=pytest.mark.nightly),
    ],
)
def test_invalid_setting_is_one_line(tmp_path: Path, value: str, reason: str) -> None:
    (tmp_path / "a.ipynb").write_text("{}")
    script = "from sleuth.studio.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "ingest", str(tmp_path / "a.ipynb")],
        env={**os.environ, "SLEUTH_LOADERS": value, "SLEUTH_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
