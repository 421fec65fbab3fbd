"""Text out of presentations, spreadsheets, OpenDocument and RTF files."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Place, Section, damage_as
from sleuth.tools.documents.formats.tables import Numbered, markdown_tables, table_pieces
from sleuth.tools.documents.formats.word_format import office_file, office_properties
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.normalization import decode, title_from

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
_META, _DUBLIN_CORE = f"{_ODF}meta:1.0}}", "{http://purl.org/dc/elements/1.1/}"
_TEXT, _TABLE, _DRAW = f"{_ODF}text:1.0}}", f"{_ODF}table:1.0}}", f"{_ODF}drawing:1.0}}"
_SPACES = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
MAX_REPEATED = 1_000
"""Repeated cells of a spreadsheet beyond this number are formatting, not values."""

_CODE = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]|[_*].'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?|\.[#0?]+)|(?P<other>.)"
)
"""Parts of a number format such as `#,##0.00 "EUR"`; conditions, colours and spaces of a width are left out."""
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_NOT_DECIMAL = re.compile(r"general|e[+-]|[@/]|[#0?] +[#0?]", re.IGNORECASE)
"""Formats of other kinds: the number as it is, scientific, text, fractions."""


@damage_as("is not a PowerPoint file, or is damaged. Save it again as .pptx.")
def read_pptx(data: bytes) -> Content:
    """Return the text, tables, charts, descriptions of pictures and notes of each slide."""
    from pptx import Presentation

    shown = Presentation(BytesIO(office_file(data, "a PowerPoint file")))
    slides = [
        Section("\n\n".join(_slide_blocks(slide)), Place("slide", number))
        for number, slide in enumerate(shown.slides, start=1)
    ]
    title = title_from(shown.core_properties.title)
    first = next((slide.text.partition("\n")[0] for slide in slides if slide.text.startswith("## ")), "")
    title = title if title and title != "PowerPoint Presentation" else title_from(first[3:])
    return Content(title, slides, *office_properties(shown.core_properties))


def _slide_blocks(slide: Any) -> Iterator[str]:  # noqa: ANN401 - python-pptx is untyped
    heading = slide.shapes.title
    if heading is not None and heading.text_frame.text.strip():
        yield f"## {title_from(heading.text_frame.text)}"
    for shape in _shapes(slide.shapes):
        if heading is None or shape.shape_id != heading.shape_id:
            yield from _shape_blocks(shape)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield f"Notes: {notes}"


def _shape_blocks(shape: Any) -> Iterator[str]:  # noqa: ANN401 - python-pptx is untyped
    if shape.has_text_frame:
        yield from filter(str.strip, (paragraph.text for paragraph in shape.text_frame.paragraphs))
    elif shape.has_table:
        yield markdown_tables([[cell.text for cell in row.cells] for row in shape.table.rows])
    elif shape.has_chart:
        yield from _chart_blocks(shape.chart)
    yield from filter(str.strip, shape._element.xpath("./*/p:cNvPr/@descr"))


def _chart_blocks(chart: Any) -> Iterator[str]:  # noqa: ANN401 - python-pptx is untyped
    """Yield the title of a chart, and a table of its values with a column for each series."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield chart.chart_title.text_frame.text
    for plot in chart.plots:
        columns = [["", *map(str, plot.categories)]]
        columns += [
            [series.name, *("" if value is None else f"{value:g}" for value in series.values)] for series in plot.series
        ]
        yield markdown_tables([list(row) for row in zip_longest(*columns, fillvalue="")])


def _shapes(shapes: Any) -> Iterator[Any]:  # noqa: ANN401 - python-pptx is untyped
    """Yield shapes in order, those of groups included."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


@damage_as("is not an Excel file, or is damaged. Save it again as .xlsx.")
def read_xlsx(data: bytes) -> Content:
    """Return the sheets as Markdown tables; a formula without a stored result is shown itself."""
    from openpyxl import load_workbook

    book = load_workbook(BytesIO(office_file(data, "an Excel file")), read_only=True, data_only=True)
    sheets = [(sheet.title, sheet_rows(sheet)) for sheet in book.worksheets]
    formulas = sum(cell.startswith("=") for _, rows in sheets for _, cells in rows for cell in cells)
    note = f"cells that show a formula, since its result is not stored: {formulas}. Save the file in Excel."
    sections = [section for name, rows in sheets for section in sheet_sections(name, rows)]
    properties = office_properties(book.properties)
    return Content(title_from(book.properties.title), sections, *properties, note * (formulas > 0))


def sheet_sections(name: str, rows: list[Numbered]) -> Iterator[Section]:
    """Yield the table of a sheet in pieces, the first one after the name of the sheet."""
    for number, (text, first, last) in enumerate(table_pieces(rows)):
        heading = "" if number else f"## {name}\n\n"
        yield Section(heading + text, Place(f"{name}, row" if first == last else f"{name}, rows", first, last))


def sheet_rows(sheet: Any) -> list[Numbered]:  # noqa: ANN401 - openpyxl is untyped
    """Return the rows of a sheet; merged cells have their value in each row, comments follow their cell.

    The dimension that the file claims is not used: some programs write a wrong one.
    """
    parser = _parser(sheet)
    rows = {
        number: {cell["column"] - 1: _text(sheet, cell) for cell in cells}
        for number, cells in parser.parse()
    }  # fmt: skip
    for merged in parser.merged_cells.mergeCell if parser.merged_cells else ():
        (left, top, _, bottom), at = merged.bounds, merged.bounds[0] - 1
        if value := rows.get(top, {}).get(left - 1):
            below = (cells for number, cells in rows.items() if top < number <= bottom and any(cells.values()))
            for cells in below:
                cells[at] = cells.get(at) or value
    for row, column, text in _comments(sheet):
        cells = rows.setdefault(row, {})
        cells[column - 1] = f"{cells.get(column - 1, '')} (comment: {text})".lstrip()
    width = max((max(cells) for cells in rows.values() if cells), default=-1) + 1
    return [(number, [cells.get(at, "") for at in range(width)]) for number, cells in sorted(rows.items()) if cells]


def _parser(sheet: Any) -> Any:  # noqa: ANN401 - openpyxl is untyped
    """Return openpyxl's parser of a sheet, with formulas in place of results that are not stored."""
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> dict[str, Any]:  # noqa: ANN401
            cell: dict[str, Any] = super().parse_cell(element)
            # An empty text is a result too.
            if cell["value"] is None and cell["data_type"] != "str" and element.find(FORMULA_TAG) is not None:
                formula = self.parse_formula(element)
                cell |= {"value": str(getattr(formula, "text", None) or formula), "data_type": "f"}
            return cell

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    return Parser(sheet._get_source(), sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)


def _comments(sheet: Any) -> Iterator[tuple[int, int, str]]:  # noqa: ANN401 - openpyxl is untyped
    """Yield rows, columns and texts of comments."""
    from openpyxl.comments.comment_sheet import CommentSheet
    from openpyxl.packaging.relationship import get_dependents, get_rels_path
    from openpyxl.utils.cell import coordinate_to_tuple
    from openpyxl.xml.constants import COMMENTS_NS
    from openpyxl.xml.functions import fromstring

    archive, path = sheet.parent._archive, get_rels_path(sheet._worksheet_path)
    if path in archive.NameToInfo:
        for part in get_dependents(archive, path).find(COMMENTS_NS):
            for place, comment in CommentSheet.from_tree(fromstring(archive.read(part.target))).comments:
                yield (*coordinate_to_tuple(place), " ".join(comment.text.split()))


def _text(sheet: Any, cell: dict[str, Any]) -> str:  # noqa: ANN401 - openpyxl is untyped
    """Return a value as people read it."""
    from openpyxl.cell.read_only import ReadOnlyCell

    value = cell["value"]
    if isinstance(value, int | float) and not isinstance(value, bool) and cell["style_id"]:
        return format_number(value, ReadOnlyCell(sheet, **cell).number_format)
    return cell_text(value)


def cell_text(value: object) -> str:
    """Return a value without a number format as people read it."""
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def format_number(value: float, code: str) -> str:
    """Return a number in a format of Excel: decimals, thousands, percent, leading zeros, units and currencies."""
    sections = code.split(";")
    code = sections[1] if value < 0 and len(sections) > 1 else sections[0]
    parts = list(_CODE.finditer(code))
    digits = next((part["digits"] for part in parts if part["digits"]), "")
    if not digits or _NOT_DECIMAL.search(re.sub(r'"[^"]*"|\[[^\]]*\]', "", code)):
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    whole, _, places = digits.rstrip(",").partition(".")
    percents = sum(part["other"] == "%" for part in parts)
    scaled = Decimal(repr(value)).scaleb(2 * percents - 3 * (len(digits) - len(digits.rstrip(","))), _EXACT)
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), context=_EXACT).copy_abs()
    before, _, after = f"{rounded:{',' if ',' in whole else ''}f}".partition(".")
    after = after[: places.count("0")] + after[places.count("0") :].rstrip("0")
    number = before.zfill(whole.count("0")) + (f".{after}" if after else "")
    sign = "-" if value < 0 and len(sections) == 1 else ""
    literals = (part["text"] or part["escaped"] or part["currency"] or part["other"] or "" for part in parts)
    shown = (number if part["digits"] == digits else text for part, text in zip(parts, literals, strict=True))
    return (sign + "".join(shown)).strip()


@damage_as("is not an OpenDocument file, or is damaged. Save it again.")
def read_odf(data: bytes) -> Content:
    """Return the text of an OpenDocument text, presentation or spreadsheet."""
    from lxml import etree

    with open_zip(data, kind="an OpenDocument file") as archive:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
        content = etree.fromstring(archive.read("content.xml"), parser)
        about = etree.fromstring(archive.read("meta.xml"), parser) if "meta.xml" in archive.namelist() else None
    etree.strip_elements(content, f"{_TEXT}tracked-changes", f"{_ODF}office:1.0}}annotation", with_tail=False)
    for element in content.iter(*_SPACES):
        element.text = _SPACES[element.tag] * min(int(element.get(f"{_TEXT}c", "1")), MAX_REPEATED)
    title = about.findtext(f".//{_DUBLIN_CORE}title") if about is not None else None
    return Content(title_from(title), list(_odf_sections(content)), *_odf_properties(about))


def _odf_properties(about: "Element | None") -> tuple[object, object, object]:
    """Return author, date and tags."""
    if about is None:
        return None, None, None
    author = about.findtext(f".//{_META}initial-creator") or about.findtext(f".//{_DUBLIN_CORE}creator")
    date = about.findtext(f".//{_DUBLIN_CORE}date") or about.findtext(f".//{_META}creation-date")
    return author, date, [each.text for each in about.iter(f"{_META}keyword")]


def _odf_sections(content: "Element") -> Iterator[Section]:
    body = next(content.iterfind(f"{_ODF}office:1.0}}body"))
    pages = list(body.iter(f"{_DRAW}page"))
    if pages:
        for number, page in enumerate(pages, start=1):
            yield Section("\n\n".join(_odf_blocks(page)), Place("slide", number))
        return
    sheets = body.find(f"{_ODF}office:1.0}}spreadsheet")
    if sheets is not None:
        for sheet in sheets.iter(f"{_TABLE}table"):
            yield from sheet_sections(sheet.get(f"{_TABLE}name", "Sheet"), _odf_rows(sheet))
        return
    yield Section("\n\n".join(_odf_blocks(body)))


def _odf_blocks(element: "Element") -> Iterator[str]:
    """Yield headings, paragraphs, list items and tables as Markdown."""
    for child in element:
        if child.tag == f"{_TEXT}h":
            level = min(int(child.get(f"{_TEXT}outline-level", "1")), 6)
            yield f"{'#' * level} {title_from(''.join(child.itertext())) or ''}"
        elif child.tag == f"{_TEXT}p":
            if text := "".join(child.itertext()).strip():
                yield text
        elif child.tag == f"{_TEXT}list-item":
            yield from (f"- {block}" for block in _odf_blocks(child))
        elif child.tag == f"{_TABLE}table":
            yield markdown_tables([cells for _, cells in _odf_rows(child)])
        else:
            yield from _odf_blocks(child)


def _odf_rows(table: "Element") -> list[Numbered]:
    """Return the rows of a table; cells that are repeated are written out, unless they are empty to the end."""
    rows: list[Numbered] = []
    number = 1
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iter(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            text = "\n".join("".join(paragraph.itertext()) for paragraph in cell.iter(f"{_TEXT}p"))
            cells += [text] * min(int(cell.get(f"{_TABLE}number-columns-repeated", "1")), MAX_REPEATED)
        while cells and not cells[-1].strip():
            cells.pop()
        repeated = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
        if cells:
            rows += [(number + at, cells) for at in range(min(repeated, MAX_REPEATED))]
        number += repeated
    return rows


@damage_as("is a damaged Rich Text file. Save it again as .rtf.")
def read_rtf(data: bytes) -> Content:
    """Return the text of a Rich Text file; footnotes are counted, not read."""
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise DocumentError("is not a Rich Text file. Save it again as .rtf.")
    source = decode(data)
    text = str(rtf_to_text(source, errors="replace"))  # type: ignore[no-untyped-call]
    footnotes = len(re.findall(r"\\footnote\b", source))
    note = f"footnotes that are left out: {footnotes}. Save the file as .docx."
    return Content(None, [Section(text)], note=note * (footnotes > 0))
