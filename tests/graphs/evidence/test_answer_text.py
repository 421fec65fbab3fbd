"""An answer as the text of a chat message."""

import pytest

from sleuth.graphs.core.answer import Citation, Status, Support, Verdict
from sleuth.graphs.evidence.answer_text import cited_parts, with_footnotes


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


@pytest.mark.parametrize(("status", "reason"), [("answered", ""), ("out_of_budget", "The budget was used up")])
def test_footnotes_have_the_numbers_of_their_marks(status: Status, reason: str) -> None:
    cited = [
        Citation(passage="p", document="d", title=title, quote=quote, start=0, end=1)
        for title, quote in (("Tower", "in Varn"), ("", "30 m"))
    ]
    message = with_footnotes(Verdict(status=status, text="Varn", citations=cited))
    assert message.text.startswith(reason)
    assert message.text.endswith("Varn [1] [2]\n\n[1] Tower: “in Varn”\n[2] d: “30 m”")
    assert [message.text[start:end] for start, end, _ in message.marks] == ["[1]", "[2]"]


@pytest.mark.parametrize(
    ("own", "mark"), [("[3]", "[^1]"), ("[1, 2]", "[^1]"), ("[^1] of [2]", "[^^1]"), ("[x]", "[1]")]
)
def test_marks_differ_from_what_a_document_contains(own: str, mark: str) -> None:
    cited = Citation(passage="p", document="d", title="Tower", quote="in Varn", start=0, end=1)
    message = with_footnotes(Verdict(status="answered", text=f"Varn {own}", citations=[cited]))
    assert message.text == f"Varn {own} {mark}\n\n{mark} Tower: “in Varn”"
    assert [message.text[start:end] for start, end, _ in message.marks] == [mark]


def test_parts_of_a_text_without_marks_are_its_sentences() -> None:
    place = Citation(passage="p", document="d", title="Tower", quote="in Varn", start=0, end=1)
    cited = [place, Citation(**place, sentence_ends=[2, 8]), Citation(**place, sentence_ends=[5])]
    assert cited_parts("A. B. C.", cited) == [(0, 2, 1), (2, 5, 2), (5, 8, 0), (5, 8, 1)]
    assert cited_parts("Varn", [place]) == [(0, 4, 0)]
    assert cited_parts("", [place]) == []
