"""A report as a Markdown, HTML or Word file, with numbered sources."""

import re
from html import escape
from io import BytesIO

from sleuth.graphs.core.answer import Answer, Citation
from sleuth.graphs.evidence.answer_text import with_marks
from sleuth.studio.console.output import Formats
from sleuth.tools.text.markdown import escape_markdown
from sleuth.tools.text.normalization import single_line

_KINDS = {"# ": ("h1", "Title"), "## ": ("h2", "Heading 1"), "- ": ("li", "List Bullet"), "": ("p", "Normal")}
"""HTML tag and Word style of a line by its beginning."""


def _lines(answer: Answer) -> list[list[str]]:
    """Return the lines of a report, each as texts and the numbers of sources in turn."""
    marked = with_marks(answer.text, answer.citations)
    before, after = map(re.escape, marked.form.split("{}"))
    return [re.split(rf" {before}(\d+){after}", line) for line in marked.text.split("\n") if line.strip()]


def _kind(line: list[str]) -> tuple[str, str, list[str]]:
    """Return the HTML tag, the Word style and the pieces of a line."""
    begin = next(each for each in _KINDS if line[0].startswith(each))
    return *_KINDS[begin], [line[0].removeprefix(begin), *line[1:]]


def _source(citation: Citation) -> str:
    """Return a source in one line: title, place and quote."""
    place = f", {citation['location']}" if citation.get("location") else ""
    return f"{single_line(citation['title'])}{place}: “{single_line(citation['quote'])}”"


def _md(answer: Answer) -> bytes:
    notes = [f"[^{number}]: {escape_markdown(_source(each))}" for number, each in enumerate(answer.citations, start=1)]
    lines = [
        "".join(f"[^{piece}]" if at % 2 else escape_markdown(piece) for at, piece in enumerate(line))
        for line in _lines(answer)
    ]
    return ("\n\n".join([*lines, *notes]) + "\n").encode()


_PAGE = """\
<!doctype html>
<html>
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ max-width: 42rem; margin: 2rem auto; padding: 0 1rem; font: 1.05rem/1.6 Georgia, serif }}
h1, h2 {{ line-height: 1.2 }}
</style>
</head>
<body>
{lines}
<h2>Sources</h2>
<ol>
{sources}
</ol>
</body>
</html>
"""


def _html(answer: Answer) -> bytes:
    lines = []
    for tag, _, pieces in map(_kind, _lines(answer)):
        linked = [
            f'<sup><a href="#source-{piece}">{piece}</a></sup>' if at % 2 else escape(piece)
            for at, piece in enumerate(pieces)
        ]
        lines.append(f"<{tag}>{''.join(linked)}</{tag}>")
    sources = [
        f'<li id="source-{number}">{escape(_source(citation))}</li>'
        for number, citation in enumerate(answer.citations, start=1)
    ]
    title = escape(answer.text.partition("\n")[0].removeprefix("# "))
    return _PAGE.format(title=title, lines="\n".join(lines), sources="\n".join(sources)).encode()


def _docx(answer: Answer) -> bytes:
    from docx import Document

    document = Document()
    for _, style, pieces in map(_kind, _lines(answer)):
        paragraph = document.add_paragraph(style=style)
        for at, piece in enumerate(pieces):
            run = paragraph.add_run(f" {piece}" if at % 2 else _printable(piece))
            run.font.superscript = bool(at % 2)
    document.add_heading("Sources", level=1)
    for citation in answer.citations:
        document.add_paragraph(_printable(_source(citation)), style="List Number")
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _printable(text: str) -> str:
    """Return the text without the control characters that XML cannot have."""
    return "".join(character for character in text if character.isprintable() or character.isspace())


FORMATS: Formats = {
    "md": ("text/markdown; charset=utf-8", _md),
    "html": ("text/html; charset=utf-8", _html),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", _docx),
}
"""The formats of a report."""
