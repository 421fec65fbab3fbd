"""A report as a file whose own text looks like footnotes."""

from io import BytesIO

from docx import Document

from sleuth.graphs.core.answer import Answer, Citation, total_cost
from sleuth.studio.console.report_file import FORMATS

SENTENCE = "The light [^3] of [1] was built."
CITED = Citation(
    passage="p", document="d", title="Light", quote="built", start=0, end=5, sentence_ends=[9 + len(SENTENCE)]
)
REPORT = Answer(
    thread="t",
    checkpoint="c",
    method="report",
    question="?",
    status="answered",
    text=f"# Light\n\n{SENTENCE}",
    citations=[CITED],
    cost=total_cost({}),
)


def saved(kind: str) -> bytes:
    _, write = FORMATS[kind]
    return write(REPORT)


def test_marks_of_a_document_are_no_footnotes_of_a_report() -> None:
    assert saved("md").decode().splitlines()[2] == "The light \\[^3] of \\[1] was built.[^1]"
    html = saved("html").decode()
    assert '<p>The light [^3] of [1] was built.<sup><a href="#source-1">1</a></sup></p>' in html
    runs = Document(BytesIO(saved("docx"))).paragraphs[1].runs
    assert [(run.text, bool(run.font.superscript)) for run in runs if run.text] == [(SENTENCE, False), (" 1", True)]
