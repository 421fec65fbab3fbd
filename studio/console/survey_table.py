"""The table of a survey: in the terminal, and as a CSV, Excel, Markdown or JSON file."""

import csv
import json
from collections.abc import Mapping
from io import BytesIO, StringIO
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.survey.cells import cell_text
from sleuth.studio.console.output import Formats, Listing
from sleuth.tools.text.markdown import escape_markdown, markdown_table

Table = Mapping[str, Any]
"""The table of an `Answer`."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that a spreadsheet would take for a formula."""
_MOST_ROWS = 100


def survey_view(answer: Answer) -> RenderableType:
    """Return the figures of a survey and the rows that count."""
    assert answer.table is not None
    columns = [column["name"] for column in answer.table["columns"]]
    listing = Listing("DOCUMENT", *(name.upper() for name in columns), folded=[name.upper() for name in columns])
    rows = [row for row in answer.table["rows"] if row["is_counted"]]
    for row in rows[:_MOST_ROWS]:
        listing.add_row(row["title"], *(cell_text(row["cells"][name]) for name in columns))
    remaining = [Text(f"{len(rows) - _MOST_ROWS:,} more: --out FILE writes all.")] if len(rows) > _MOST_ROWS else []
    sentence = answer.text.partition("\n\n")[0]
    figures = [Text(f"  {line}", style="dim") for line in answer.table["figures"]]
    return Group(Text(sentence, style="bold"), *figures, Text(""), listing, *remaining)


def rows_of(table: Table) -> list[list[str]]:
    """Return the table as rows of text: a header, then every document that was asked, with a quote for each cell."""
    names = [column["name"] for column in table["columns"]]
    header = ["document", "title", "counted", *(part for name in names for part in (name, f"{name}: quote"))]
    rows = []
    for row in table["rows"]:
        if row["cells"] is None:
            continue
        cells = [row["cells"][name] for name in names]
        parts = [
            part
            for cell in cells
            for part in (cell_text(cell), " … ".join(citation["quote"] for citation in cell["citations"]))
        ]
        rows.append([row["source"], row["title"], "yes" if row["is_counted"] else "no", *parts])
    return [header, *rows]


def _csv(table: Table) -> bytes:
    file = StringIO()
    rows = [[f"'{text}" if text.startswith(_FORMULA) else text for text in row] for row in rows_of(table)]
    csv.writer(file).writerows(rows)
    return b"\xef\xbb\xbf" + file.getvalue().encode()  # the mark lets Excel read UTF-8


def _xlsx(table: Table) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "survey"
    for row in rows_of(table):
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("", text)[:32_000] for text in row])
        for cell in sheet[sheet.max_row]:
            cell.data_type = "s"  # a text, also if it looks like a formula
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    sheet.freeze_panes = "A2"
    figures = book.create_sheet("figures")
    for line in table["figures"]:
        figures.append([line])
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def _md(table: Table) -> bytes:
    figures = "\n".join(f"- {line}" for line in table["figures"])
    return escape_markdown(f"{markdown_table(rows_of(table))}\n\n{figures}\n").encode()


def _json(table: Table) -> bytes:
    return json.dumps(table, ensure_ascii=False, indent=1).encode()


FORMATS: Formats = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", _xlsx),
    "md": ("text/markdown; charset=utf-8", _md),
    "json": ("application/json", _json),
}
"""The formats of a table."""
