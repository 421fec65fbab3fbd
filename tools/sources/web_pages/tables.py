"""Tables of a page as Markdown, with the page's name, so that a cell can be found and cited."""

import re
from typing import TYPE_CHECKING

from sleuth.tools.sources.web_pages.page import Table
from sleuth.tools.text import markdown_table, single_line, title_from

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

MAX_ROWS = 2_000
MAX_COLUMNS = 64
MAX_LAYOUT_CELL = 1_000
"""Characters; a table with a longer cell lays out prose."""
MAX_PAGE_CHARS = 100_000
"""Characters that all tables of one page may have."""

_CELLS = ("th", "td")
_BAR = re.compile(r"(?<!\\)\|")
_PARTS = ("table", "caption", "tbody", "thead", "tfoot", "tr", *_CELLS)


def take_tables(soup: "BeautifulSoup") -> tuple[list[Table], list[str]]:
    """Remove data tables from a page, and return them with warnings about cuts.

    A table that contains another one, has a single row or column, or a cell of prose, is for layout: its content stays
    in the page as text.
    """
    found: list[Table] = []
    warnings: list[str] = []
    for table in soup("table"):
        is_layout = table.get("role") in ("presentation", "none") or table.find("table") is not None
        rows = [] if is_layout else _grid(table)
        if _is_data(rows):
            caption = title_from(table.caption.get_text(" ") if table.caption else None) or ""
            if (every := len(table("tr"))) > len(rows):
                warnings.append(f"only {len(rows):,} of {every:,} rows of a table were read")
            table.extract()
            found.append(Table(markdown=markdown_table(rows), caption=caption))
    for part in soup(_PARTS):
        part.name = "div"
    return _bounded([table for table in found if any(map(str.isalnum, table.markdown))], warnings)


def _is_data(rows: list[list[str]]) -> bool:
    wide = len(rows) > 1 and max(map(len, rows)) > 1
    return wide and all(len(cell) <= MAX_LAYOUT_CELL for row in rows for cell in row)


def _grid(table: "Tag") -> list[list[str]]:
    """Return a table's cells as text; a cell that spans several rows or columns is repeated in each of them."""
    rows: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}
    for row in table("tr", limit=MAX_ROWS):
        line: dict[int, str] = {column: text for column, (_, text) in hanging.items()}
        hanging = {column: (left - 1, text) for column, (left, text) in hanging.items() if left > 1}
        column = 0
        for cell in row(_CELLS, limit=MAX_COLUMNS):
            while column in line:
                column += 1
            text = single_line(cell.get_text(" "))
            for spanned in range(column, min(column + _span(cell, "colspan"), MAX_COLUMNS)):
                line[spanned] = text
                if (down := _span(cell, "rowspan")) > 1:
                    hanging[spanned] = (down - 1, text)
        rows.append([line.get(column, "") for column in range(max(line, default=-1) + 1)])
    return [row if len(set(row)) > 1 else row[:1] for row in rows]  # a heading across the whole table is kept once


def _span(cell: "Tag", name: str) -> int:
    value = str(cell.get(name, "1")).strip()
    return min(max(int(value), 1), MAX_ROWS) if value.isdecimal() and len(value) < 6 else 1


def _bounded(tables: list[Table], warnings: list[str]) -> tuple[list[Table], list[str]]:
    kept, room = [], MAX_PAGE_CHARS
    for table in tables:
        room -= len(table.markdown)
        if room < 0:
            break
        kept.append(table)
    if len(kept) < len(tables):
        warnings = [*warnings, f"only the first {len(kept)} of {len(tables)} tables were kept"]
    return kept, warnings


def cell_name(markdown: str, place: int) -> str:
    """Return row and column of a character of a table; rows count from 1 below the header, which names the columns."""
    lines, number = markdown.split("\n"), markdown.count("\n", 0, place)
    bars = len(_BAR.findall(markdown[:place].rpartition("\n")[2]))
    at, header = min(max(bars, 1), len(_cells(lines[number])) or 1) - 1, _cells(lines[0])
    column = f"column {header[at]}" if at < len(header) and header[at] else "a column without a name"
    return f"row {number - 1}, {column}" if number > 1 else f"header, {column}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line)[1:-1]]
