"""Build the PDF and DOCX articles of the example corpus from the Markdown in examples/sources.

Needs reportlab and python-docx (neither is a dependency of the package):

    python examples/build_binary.py

Running it twice gives the same bytes: dates, document ids and archive timestamps are fixed.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from docx import Document
from reportlab.lib import colors
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
CORPUS = HERE / "corpus"
PDF_STEMS = (
    "charter-of-1698",
    "copper-strike-of-1911",
    "dunvarrow-copper-company",
    "tolvane-salt-company",
    "ullavar-packet-company",
)
DOCX_STEMS = ("dorrity-vann", "hollin-valley-railway", "immer-dam", "keld-infirmary", "rosamund-keld")
PAGE_BREAK = "<!-- pagebreak -->"
PUBLISHER = "The Ullavar Companion"
FIXED_DATE = datetime(2024, 1, 1)
FIXED_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


class Block(NamedTuple):
    """One block of a source: kind is title, heading, paragraph, table or pagebreak."""

    kind: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def parse(source: str) -> list[Block]:
    """Split the small Markdown subset used in the sources into blocks."""
    return [_block(chunk.strip()) for chunk in re.split(r"\n\s*\n", source) if chunk.strip()]


def _block(chunk: str) -> Block:
    if chunk == PAGE_BREAK:
        return Block("pagebreak")
    if chunk.startswith("## "):
        return Block("heading", chunk[3:])
    if chunk.startswith("# "):
        return Block("title", chunk[2:])
    if chunk.startswith("|"):
        return Block("table", rows=_rows(chunk))
    return Block("paragraph", " ".join(chunk.split()))


def _rows(chunk: str) -> tuple[tuple[str, ...], ...]:
    lines = [line for line in chunk.splitlines() if not re.fullmatch(r"[|\s:-]+", line)]
    return tuple(tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines)


def _flowable(block: Block) -> Flowable:
    styles = getSampleStyleSheet()
    if block.kind == "pagebreak":
        return PageBreak()
    if block.kind == "table":
        cells = [[Paragraph(_escape(cell), styles["BodyText"]) for cell in row] for row in block.rows]
        grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("BACKGROUND", (0, 0), (-1, 0), colors.whitesmoke)]
        return Table(cells, repeatRows=1, style=TableStyle([*grid, ("VALIGN", (0, 0), (-1, -1), "TOP")]))
    style = {"title": "Title", "heading": "Heading2"}.get(block.kind, "BodyText")
    return Paragraph(_escape(block.text), styles[style])


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def build_pdf(blocks: list[Block]) -> bytes:
    """Lay the blocks out on A5 pages."""
    buffer = io.BytesIO()
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), 45)
    document = SimpleDocTemplate(buffer, pagesize=A5, title=blocks[0].text, author=PUBLISHER, invariant=1, **margins)
    story: list[Flowable] = []
    for block in blocks:
        story += [_flowable(block), Spacer(1, 6)]
    document.build(story)
    return buffer.getvalue()


def build_docx(blocks: list[Block]) -> bytes:
    """Write the blocks as a Word document with fixed properties."""
    document = Document()
    properties = document.core_properties
    properties.title, properties.author, properties.last_modified_by = blocks[0].text, PUBLISHER, PUBLISHER
    properties.created = properties.modified = FIXED_DATE
    properties.revision, properties.comments = 1, ""
    for block in blocks:
        if block.kind == "table":
            table = document.add_table(rows=0, cols=len(block.rows[0]), style="Table Grid")
            for row in block.rows:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
        elif block.kind == "pagebreak":
            document.add_page_break()
        elif block.kind == "paragraph":
            document.add_paragraph(block.text)
        else:
            document.add_heading(block.text, level=1 if block.kind == "title" else 2)
    buffer = io.BytesIO()
    document.save(buffer)
    return _fixed_zip(buffer.getvalue())


def _fixed_zip(data: bytes) -> bytes:
    """Rewrite an archive with sorted members and fixed timestamps."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        # The content-type list comes first, as readers of the format expect.
        for name in sorted(old.namelist(), key=lambda item: (item != "[Content_Types].xml", item)):
            info = zipfile.ZipInfo(name, date_time=FIXED_ZIP_DATE)
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o600 << 16
            new.writestr(info, old.read(name))
    return buffer.getvalue()


def main() -> None:
    """Write every PDF and DOCX article into the corpus folder."""
    builders: tuple[tuple[tuple[str, ...], str, Callable[[list[Block]], bytes]], ...] = (
        (PDF_STEMS, ".pdf", build_pdf),
        (DOCX_STEMS, ".docx", build_docx),
    )
    CORPUS.mkdir(exist_ok=True)
    for stems, suffix, build in builders:
        for stem in stems:
            blocks = parse((SOURCES / f"{stem}.md").read_text(encoding="utf-8"))
            target = CORPUS / f"{stem}{suffix}"
            target.write_bytes(build(blocks))
            print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
