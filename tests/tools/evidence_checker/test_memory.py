"""The memory that the evidence checker takes for a reading is given back."""

import psutil
import pytest

from benchmarks.harness import in_own_process
from sleuth.tools.evidence_checker.checker import EvidenceChecker
from sleuth.tools.evidence_checker.inputs import Evidence

TEXT = "The light was built by Edric Gannow in 1903. The Kelp Fair is held in Brindlecote every May. "


def growth() -> int:
    """Return by how many MiB this process has grown after a reading of eight whole windows."""
    checker, process = EvidenceChecker.load(), psutil.Process()
    checker.read("Who built the light?", [Evidence(text=TEXT)])
    before = process.memory_info().rss
    checker.read("Who built the light?", [Evidence(title=f"Document {at}", text=20 * TEXT) for at in range(8)])
    return (process.memory_info().rss - before) >> 20


@pytest.mark.nightly
def test_memory_of_a_reading_is_given_back() -> None:
    assert in_own_process(growth) < 150
