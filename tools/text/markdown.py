"""Markdown of foreign text and of tables."""

import re
from collections.abc import Sequence

from sleuth.tools.text.normalization import single_line


def escape_markdown(text: str) -> str:
    """Return foreign text as Markdown in which it makes no image, link, footnote or HTML; its other syntax stays."""
    return re.sub(r"(?<!\\)((?:\\\\)*)([\[<])", r"\1\\\2", text)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first row as its header; shorter rows are filled up."""
    width = max(map(len, rows), default=0)
    lines = [_table_line([*row, *[""] * (width - len(row))]) for row in rows if any(cell.strip() for cell in row)]
    return "\n".join([*lines[:1], _table_line(["---"] * width), *lines[1:]]) if lines else ""


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(single_line(cell).replace("|", "\\|") for cell in cells) + " |"
