"""A report as a Markdown, HTML or Word file, with numbered sources."""

from html import escape
from io import BytesIO

from sleuth.graphs.core.answer import Answer, Citation
from sleuth.graphs.evidence.answer_text import with_marks
from sleuth.studio.console.output import Formats
from sleuth.tools.text.normalization import single_line

_KINDS = {"# ": "title", "## ": "heading", "- ": "item"}


def _blocks(answer: Answer) -> list[tuple[str, list[tuple[str, int | None]]]]:
    """Return the kind of each line, and pieces of text, each with the number of the source that follows it."""
    marked = with_marks(answer.text, answer.citations)
    blocks, start = [], 0
    for line in marked.text.split("\n"):
        end, mark = start + len(line), next((each for each in _KINDS if line.startswith(each)), "")
        at = start + len(mark)
        pieces: list[tuple[str, int | None]] = []
        for begin, stop, citation in marked.marks:
            if start <= begin < end:
                pieces.append((marked.text[at:begin].rstrip(), citation + 1))
                at = stop
        pieces.append((marked.text[at:end], None))
        if line.strip():
            blocks.append((_KINDS.get(mark, "paragraph"), pieces))
        start = end + 1
    return blocks


def _source(citation: Citation) -> str:
    """Return a source in one line: title, place and quote."""
    place = f", {citation['location']}" if citation.get("location") else ""
    return f"{single_line(citation['title'])}{place}: “{single_line(citation['quote'])}”"


def _md(answer: Answer) -> bytes:
    marks = {kind: mark for mark, kind in _KINDS.items()}
    lines = []
    for kind, pieces in _blocks(answer):
        text = "".join(f"{text}[^{number}]" if number else text for text, number in pieces)
        lines.append(f"{marks.get(kind, '')}{text}")
    lines += [f"[^{number}]: {_source(each)}" for number, each in enumerate(answer.citations, start=1)]
    return ("\n\n".join(lines) + "\n").encode()


_TAGS = {"title": "h1", "heading": "h2", "item": "li", "paragraph": "p"}
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
    for kind, pieces in _blocks(answer):
        text = "".join(
            escape(text) + (f'<sup><a href="#source-{number}">{number}</a></sup>' if number else "")
            for text, number in pieces
        )
        lines.append(f"<{_TAGS[kind]}>{text}</{_TAGS[kind]}>")
    sources = [
        f'<li id="source-{at}">{escape(_source(each))}</li>' for at, each in enumerate(answer.citations, start=1)
    ]
    title = escape(answer.text.partition("\n")[0].removeprefix("# "))
    return _PAGE.format(title=title, lines="\n".join(lines), sources="\n".join(sources)).encode()


_STYLES = {"title": "Title", "heading": "Heading 1", "item": "List Bullet", "paragraph": "Normal"}


def _docx(answer: Answer) -> bytes:
    from docx import Document

    document = Document()
    for kind, pieces in _blocks(answer):
        paragraph = document.add_paragraph(style=_STYLES[kind])
        for text, number in pieces:
            paragraph.add_run(_printable(text))
            if number:
                paragraph.add_run(f" {number}").font.superscript = True
    document.add_heading("Sources", level=1)
    for citation in answer.citations:
        document.add_paragraph(_printable(_source(citation)), style="List Number")
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _printable(text: str) -> str:
    """Return the text without the control characters that XML cannot have."""
    return "".join(each for each in text if each.isprintable() or each.isspace())


FORMATS: Formats = {
    "md": ("text/markdown; charset=utf-8", _md),
    "html": ("text/html; charset=utf-8", _html),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", _docx),
}
"""The formats of a report."""
