"""Records of sub-runs."""

import pytest

from sleuth.graphs.core.answer import Subrun, Support
from sleuth.graphs.core.subrun import new_subrun, verdict_of


@pytest.mark.parametrize("support", [{}, {"support": Support(score=0.3, answerable=0.4, weak=True)}])
def test_verdict_of_a_subrun_has_its_support(support: dict[str, Support]) -> None:
    hop = Subrun(**{**new_subrun("par-rag", "it has parts"), "status": "answered", "text": "Varn", **support})
    assert verdict_of(hop) == {"status": "answered", "text": "Varn", "citations": [], **support}
