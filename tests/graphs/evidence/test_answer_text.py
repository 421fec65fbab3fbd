"""An answer as the text of a chat message."""

import re

import pytest
from markdown_it import MarkdownIt

from sleuth.graphs.core.answer import Citation, Status, Support, Verdict
from sleuth.graphs.evidence.answer_text import cited_parts, with_footnotes
from sleuth.tools.text.markdown import escape_markdown


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
@pytest.mark.parametrize("place", ["text", "title", "quote"])
def test_marks_differ_from_what_a_document_contains(own: str, mark: str, place: str) -> None:
    texts = {"text": "Varn", "title": "Tower", "quote": "in Varn"}
    texts[place] += f" {own}"
    cited = Citation(passage="p", document="d", title=texts["title"], quote=texts["quote"], start=0, end=1)
    message = with_footnotes(Verdict(status="answered", text=texts["text"], citations=[cited]))
    text, title, quote = (each.replace("[", "\\[") for each in texts.values())
    assert message.text == f"{text} {mark}\n\n{mark} {title}: “{quote}”"
    assert [message.text[start:end] for start, end, _ in message.marks] == [mark]


PLANTED = [
    "![x](https://e.org/a.png)",
    "[x](https://e.org)",
    "[x]: https://e.org",
    "\\[x](https://e.org)",
    "\\\\![x](https://e.org/a.png)",
    "<img src=https://e.org/a.png>",
    "<https://e.org>",
    "`<img src=https://e.org>`",
]


@pytest.mark.parametrize("planted", PLANTED)
def test_message_has_no_image_link_or_html_of_a_document(planted: str) -> None:
    cited = Citation(passage="p", document="d", title=planted, quote=f"in {planted}", start=0, end=1)
    message = with_footnotes(Verdict(status="answered", text=f"Varn.\n\n{planted}", citations=[cited]))
    shown = MarkdownIt("commonmark").render(message.text)
    assert not re.search(r"<(?!/?(?:p|code)>)", shown), shown
    assert shown.count("e.org") == 3
    assert escape_markdown(escape_markdown(planted)) == escape_markdown(planted)


def test_parts_of_a_text_without_marks_are_its_sentences() -> None:
    place = Citation(passage="p", document="d", title="Tower", quote="in Varn", start=0, end=1)
    cited = [place, Citation(**place, sentence_ends=[2, 8]), Citation(**place, sentence_ends=[5])]
    assert cited_parts("A. B. C.", cited) == [(0, 2, 1), (2, 5, 2), (5, 8, 0), (5, 8, 1)]
    assert cited_parts("Varn", [place]) == [(0, 4, 0)]
    assert cited_parts("", [place]) == []
