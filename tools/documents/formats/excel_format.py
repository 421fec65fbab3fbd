"""Text out of Excel files."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.drawing_ml import shape_blocks, shapes
from sleuth.tools.documents.formats.marks import HIDDEN, Run, link, remark, written
from sleuth.tools.documents.formats.number_formats import cell_text
from sleuth.tools.documents.formats.office_parts import RELATED, Part
from sleuth.tools.documents.formats.tables import Cells, Span, Table, mark_hidden, table_pieces
from sleuth.tools.documents.formats.word_format import office_file, office_properties
from sleuth.tools.places import Place
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

MAX_LINKED = 1_000
"""Rows and columns of a range that share a link, at most."""

_DISCLAIMER = re.compile(r"\A\[[^\]\n]*\].*?linkid=\d+\s*\n[^\n]*:\s*\n", re.DOTALL)
"""The beginning of a copy of a threaded comment for older programs."""
_HYPERLINK = re.compile(r'HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_YES = ("1", "true")


def read_xlsx(data: bytes) -> Content:
    """Return the sheets as Markdown tables, then their charts and shapes, and the chart sheets.

    A formula without a stored result is returned as it is. Hidden sheets, rows and columns are marked.
    """
    from openpyxl import load_workbook

    book = load_workbook(BytesIO(office_file(data, "an Excel file")), read_only=True, data_only=True, rich_text=True)
    workbook = next(Part(book._archive, "").of_kind("officeDocument"))
    persons = (person for part in workbook.of_kind("person") for person in part.root)
    people = {person.get("id"): person.get("displayName", "") for person in persons}
    sheets = {sheet._worksheet_path: sheet for sheet in book.worksheets}
    sections: list[Section] = []
    formulas = 0
    for element in workbook.root.iter("{*}sheet"):
        name, part = element.get("name", "Sheet"), workbook.related(element.get(f"{RELATED}id"))
        if element.get("state", "visible") != "visible":
            name = f"{name} {HIDDEN}"
        if part.name in sheets:
            rows = _Sheet(sheets[part.name], part, people).rows()
            formulas += sum(cell.startswith("=") for _, cells in rows for cell in cells if isinstance(cell, str))
            sections += sheet_sections(name, rows)
        blocks = (shape_blocks(shape, drawing) for drawing in part.of_kind("drawing") for shape in shapes(drawing.root))
        sections += drawing_section(name, chain.from_iterable(blocks))
    note = f"cells that show a formula, since its result is not stored: {formulas}. Save the file in Excel."
    return Content(
        title_from(book.properties.title), sections, *office_properties(book.properties), note * (formulas > 0)
    )


def sheet_sections(name: str, rows: Iterable[tuple[int, Cells]], *, headers: int = 0) -> Iterator[Section]:
    """Yield the table of a sheet in pieces, the first one after the name of the sheet."""
    for number, (text, first, last) in enumerate(table_pieces(rows, headers=headers)):
        heading = "" if number else f"## {name}\n\n"
        yield Section(heading + text, Place(f"{name}, row" if first == last else f"{name}, rows", first, last))


def drawing_section(name: str, blocks: Iterable[str]) -> Iterator[Section]:
    """Yield the texts of the charts and shapes on a sheet, if there are any."""
    if text := "\n\n".join(filter(None, blocks)):
        yield Section(text, Place(f"{name}, drawing"))


@dataclass(frozen=True, slots=True)
class _Style:
    """The format of the numbers of a cell, and the marks of its font."""

    code: str
    struck: bool
    raised: bool


def _run(piece: Any) -> Run:  # noqa: ANN401 - openpyxl is untyped
    font = getattr(piece, "font", None)
    if font is None:
        return Run(str(piece))
    return Run(str(piece), font.vertAlign == "superscript", bool(font.strike))


class _Sheet:
    """The cells of a sheet. The dimension that the file claims is not used: some programs write a wrong one."""

    def __init__(self, sheet: Any, part: Part, people: Mapping[str | None, str]) -> None:  # noqa: ANN401 - openpyxl is untyped
        self._sheet, self._book, self._part, self._people = sheet, sheet.parent, part, people
        self._parser = _parser(sheet)
        self._style = lru_cache(maxsize=None)(self._find_style)

    def rows(self) -> list[tuple[int, Cells]]:
        """Return the rows with their numbers, comments after the text of their cell, hidden rows and columns marked."""
        rows = {
            number: {cell["column"] - 1: self._text(cell) for cell in cells} for number, cells in self._parser.parse()
        }
        self._add_links(rows)
        for row, column, text in self._comments():
            cells = rows.setdefault(row, {})
            cells[column] = f"{cells.get(column, '')} {text}".lstrip()
        rows = {number: cells for number, cells in sorted(rows.items()) if any(map(str.strip, cells.values()))}
        return self._merged(rows) if rows else []

    def _find_style(self, number: int) -> _Style:
        from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE

        style = self._book._cell_styles[number]
        font, code, formats = self._book._fonts[style.fontId], style.numFmtId, self._book._number_formats
        is_custom = code >= BUILTIN_FORMATS_MAX_SIZE
        number_format = formats[code - BUILTIN_FORMATS_MAX_SIZE] if is_custom else BUILTIN_FORMATS.get(code, "General")
        return _Style(number_format, bool(font.strike), font.vertAlign == "superscript")

    def _text(self, cell: Mapping[str, Any]) -> str:
        """Return a value as people read it."""
        from openpyxl.utils.escape import unescape

        value, style = cell["value"], self._style(cell["style_id"])
        text = cell_text(value, style.code)
        if isinstance(value, list):  # rich text
            text = written(_run(piece) for piece in value)
        elif style.raised or style.struck:
            text = written([Run(text, style.raised, style.struck)])
        return str(unescape(text)) if "_x" in text else text

    def _add_links(self, rows: dict[int, dict[int, str]]) -> None:
        from openpyxl.utils.cell import range_boundaries

        links = [((cell[1], cell[0]) * 2, address) for cell, address in self._parser.addresses.items()]
        links += [
            (range_boundaries(hyperlink.ref), f"{address}#{hyperlink.location}" if hyperlink.location else address)
            for hyperlink in self._parser.hyperlinks.hyperlink
            if (address := self._part.address(hyperlink.id))
        ]
        for (left, top, right, bottom), address in links:
            for cells in (rows[number] for number in range(top, min(bottom, top + MAX_LINKED) + 1) if number in rows):
                for column in range(left - 1, min(right, left + MAX_LINKED)):
                    if cells.get(column):
                        cells[column] = link(cells[column], address)

    def _comments(self) -> Iterator[tuple[int, int, str]]:
        """Yield rows, columns and texts of comments; those in threads replace the copies for older programs."""
        parts = self._part.of_kind("threadedComment")
        in_threads = [comment for part in parts for comment in part.root.iter("{*}threadedComment")]
        cells = {comment.get("ref") for comment in in_threads}
        for part in self._part.of_kind("comments"):
            authors = [author.text or "" for author in part.root.iter("{*}author")]
            for comment in part.root.iter("{*}comment"):
                author = authors[int(comment.get("authorId", "0"))] if authors else ""
                text = _DISCLAIMER.sub("", "".join(element.text or "" for element in comment.iter("{*}t")))
                author = "" if author.startswith("tc=") else author
                if comment.get("ref") not in cells:
                    yield (*_place(comment), remark("Comment", single_line(text.removeprefix(f"{author}:")), author))
        for comment in in_threads:
            text, author = comment.findtext("{*}text") or "", self._people.get(comment.get("personId"), "")
            yield (*_place(comment), remark("Comment", single_line(text), author))

    def _merged(self, rows: dict[int, dict[int, str]]) -> list[tuple[int, Cells]]:
        """Return the rows with spans of merged cells."""
        numbers = list(rows)
        filled = [at for cells in rows.values() for at, text in cells.items() if text.strip()]
        left, width = min(filled), max(filled) + 1
        table: Table = [[cells.get(at, "") for at in range(width)] for cells in rows.values()]
        for merged in self._parser.merged_cells.mergeCell if self._parser.merged_cells else ():
            first, top, last, bottom = merged.bounds
            begin, end = bisect_left(numbers, top), bisect_right(numbers, bottom)
            text = rows.get(top, {}).get(first - 1, "")
            for cells in table[begin:end]:
                cells[first - 1 : last] = [None] * len(cells[first - 1 : last])
            if begin < end and first <= width:
                table[begin][first - 1] = Span(text, min(last, width) - first + 1, end - begin)
        dimensions = self._parser.row_dimensions
        hidden = [at for at, number in enumerate(numbers) if dimensions.get(str(number), {}).get("hidden") in _YES]
        columns = [column for column in self._parser.column_dimensions.values() if column.get("hidden") in _YES]
        spans = (range(int(column["min"]) - 1, min(int(column["max"]), width)) for column in columns)
        mark_hidden(table, hidden, {at for span in spans for at in span})
        return [(number, cells[left:]) for number, cells in zip(numbers, table, strict=True)]


def _place(comment: "Element") -> tuple[int, int]:
    from openpyxl.utils.cell import coordinate_to_tuple

    row, column = coordinate_to_tuple(comment.get("ref", "A1"))
    return row, column - 1


def _parser(sheet: Any) -> Any:  # noqa: ANN401 - openpyxl is untyped
    """Return openpyxl's parser of a sheet, with formulas in place of results that are not stored, and their links."""
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
            super().__init__(*arguments, **options)
            self.addresses: dict[tuple[int, int], str] = {}

        def parse_cell(self, element: Any) -> dict[str, Any]:  # noqa: ANN401
            cell: dict[str, Any] = super().parse_cell(element)
            cell_formula = element.find(FORMULA_TAG)
            if cell_formula is None:
                return cell
            if linked := _HYPERLINK.match(cell_formula.text or ""):
                self.addresses[cell["row"], cell["column"]] = linked[1]
            # An empty text is a result too.
            if cell["value"] is None and cell["data_type"] != "str":
                formula = self.parse_formula(element)
                cell |= {"value": str(getattr(formula, "text", None) or formula), "data_type": "f"}
            return cell

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats, "rich_text": True}
    return Parser(sheet._get_source(), sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)
