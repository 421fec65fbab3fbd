"""A report as a list of blocks, and its two forms: Markdown, and one HTML page that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sleuth.tools.text import markdown_table

Rows = Sequence[Sequence[str]]
"""A table: the first row is its header."""

_STYLE = "\n".join(
    (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}",
        "table{border-collapse:collapse;margin:1em 0;font-size:13px;font-variant-numeric:tabular-nums}",
        "th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}",
        "pre{background:#f5f5f5;padding:.7em;overflow-x:auto}figure{margin:1em 0}svg{max-width:100%;height:auto}",
        "p.label{background:#fff3cd;border:1px solid #e0c36a;padding:.6em}",
    )
)


@dataclass(frozen=True, slots=True)
class Heading:
    """`level` counts from 1."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text; `label` highlights it."""

    text: str
    label: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are plain text."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class Code:
    """Commands to copy."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG with its title; only in the HTML report."""

    svg: str
    title: str


Block = Heading | Paragraph | Table | Code | Picture


def to_markdown(blocks: Sequence[Block]) -> str:
    """Return all but the pictures."""
    return "\n\n".join(_markdown(block) for block in blocks if not isinstance(block, Picture)) + "\n"


def _markdown(block: Heading | Paragraph | Table | Code) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text, label):
            return f"**{text}**" if label else text
        case Table(rows):
            return markdown_table(rows)
        case Code(text):
            return f"```sh\n{text}\n```"


def to_html(blocks: Sequence[Block]) -> str:
    """Return a page with its style and pictures inside."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Evaluation")
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(_html(block) for block in blocks)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text, label):
            return f'<p class="label">{escape(text)}</p>' if label else f"<p>{escape(text)}</p>"
        case Table(rows):
            head, *body = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
            lines = "".join(f"<tr>{row}</tr>\n" for row in body)
            return f"<table><thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>\n{lines}</tbody></table>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Picture(svg, title):
            return f"<figure>{svg}<figcaption>{escape(title)}</figcaption></figure>"


def align_columns(rows: Rows) -> str:
    """Return a table for a terminal; the first column is left-aligned, the others right-aligned."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        [
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)
