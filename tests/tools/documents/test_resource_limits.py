"""Limits of the processes that read files."""

import subprocess
import sys

import pytest

CHILD = "from sleuth.tools.documents.resource_limits import peak_megabytes; print(peak_megabytes())"


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is known on Linux only")
def test_peak_memory_is_not_that_of_the_process_that_started_it() -> None:
    held = b"x" * (400 << 20)
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout) < len(held) >> 20
