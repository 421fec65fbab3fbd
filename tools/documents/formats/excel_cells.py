"""Cells of Excel sheets as people see them."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from sleuth.tools.documents.formats.tables import Numbered

_CODE = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]|[_*].'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?|\.[#0?]+)|(?P<other>.)"
)
"""Parts of a number format such as `#,##0.00 "EUR"`; conditions, colours and spaces of a width are left out."""
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_NOT_DECIMAL = re.compile(r"general|e[+-]|[@/]|[#0?] +[#0?]", re.IGNORECASE)
"""Formats of other kinds: the number as it is, scientific, text, fractions."""


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
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, int | float) and not isinstance(value, bool) and cell["style_id"]:
        return format_number(value, ReadOnlyCell(sheet, **cell).number_format)
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
