"""An answer as the text of a chat message."""

import pytest

from sleuth.graphs.core.answer import Support, Verdict
from sleuth.graphs.evidence.answer_text import with_footnotes


@pytest.mark.parametrize(
    ("support", "end"),
    [
        (Support(score=0.9, answerable=0.9), "Varn"),
        (Support(score=0.3, answerable=0.9, weak=True), "The sources support this answer only weakly."),
    ],
)
def test_message_of_a_weak_answer_names_it(support: Support, end: str) -> None:
    verdict = Verdict(status="answered", text="Varn", citations=[], support=support)
    assert with_footnotes(verdict).text.endswith(end)
