"""Text of drawings in Office files (DrawingML): text bodies of shapes and tables, charts, and diagrams (SmartArt)."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from sleuth.tools.documents.formats.equations import equation
from sleuth.tools.documents.formats.marks import Run, link, written
from sleuth.tools.documents.formats.number_formats import cell_text
from sleuth.tools.documents.formats.office_parts import RELATED, Part
from sleuth.tools.documents.formats.tables import Span, markdown_tables

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

MAIN = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_LATER_CHART = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def paragraphs(body: "Element", part: Part) -> Iterator[str]:
    """Yield the paragraphs of an element with their marks."""
    for paragraph in body.iter(f"{MAIN}p"):
        if text := written(_runs(paragraph, part)).strip():
            yield text


def _runs(paragraph: "Element", part: Part) -> Iterator[Run]:
    for child in paragraph:
        if child.tag == f"{MAIN}br":
            yield Run("\n")
        elif child.tag in (f"{MAIN}r", f"{MAIN}fld"):
            yield _run(child, part)
        elif child.tag != _FALLBACK:
            yield from (Run(f" {equation(math)} ") for math in child.iter(f"{_MATH}oMath") if not _is_copy(math))


def _run(run: "Element", part: Part) -> Run:
    text, marks = run.findtext(f"{MAIN}t") or "", run.find(f"{MAIN}rPr")
    if marks is None:
        return Run(text)
    click = marks.find(f"{MAIN}hlinkClick")
    return Run(
        text,
        raised=int(marks.get("baseline", "0").rstrip("%").partition(".")[0] or 0) > 0,
        struck=marks.get("strike", "noStrike") != "noStrike",
        address=part.address(click.get(f"{RELATED}id")) if click is not None else "",
    )


def _is_copy(element: "Element") -> bool:
    """Return whether an element is in a copy for older programs."""
    return next(element.iterancestors(_FALLBACK), None) is not None


def shapes(drawing: "Element") -> Iterator["Element"]:
    """Yield the shapes, pictures, tables, charts and diagrams of a slide or sheet that are shown, also in groups."""
    for shape in drawing.iter("{*}sp", "{*}cxnSp", "{*}graphicFrame", "{*}pic"):
        groups = shape.iterancestors("{*}grpSp")
        hidden = [about.get("hidden") for element in (shape, *groups) for about in element.iterfind("./*/{*}cNvPr")]
        if not {"1", "true"}.intersection(hidden) and not _is_copy(shape):
            yield shape


def shape_blocks(shape: "Element", part: Part) -> Iterator[str]:
    """Yield the text of a shape, a table, a chart or a diagram, and its description."""
    about = shape.find("./*/{*}cNvPr")
    click = about.find(f"{MAIN}hlinkClick") if about is not None else None
    address = part.address(click.get(f"{RELATED}id")) if click is not None else ""
    tables = [_table(table, part) for table in shape.iter(f"{MAIN}tbl")]
    yield from tables or (link(text, address) for text in paragraphs(shape, part))
    yield from objects(shape, part)
    if about is not None and (description := about.get("descr", "").strip()):
        yield link(description, address)


def objects(drawing: "Element", part: Part) -> Iterator[str]:
    """Yield the texts of the charts and diagrams to which a drawing refers."""
    for element in drawing.iter(f"{_CHART}chart", f"{_LATER_CHART}chart", f"{_DIAGRAM}relIds"):
        if not _is_copy(element):
            is_diagram = element.tag == f"{_DIAGRAM}relIds"
            related = part.related(element.get(f"{RELATED}dm" if is_diagram else f"{RELATED}id"))
            yield from _diagram(related) if is_diagram else _chart(related)


def _table(element: "Element", part: Part) -> str:
    rows = [
        [
            Span(" ".join(paragraphs(cell, part)), int(cell.get("gridSpan", "1")), int(cell.get("rowSpan", "1")))
            for cell in row.iter(f"{MAIN}tc")
            if not {cell.get("hMerge"), cell.get("vMerge")} & {"1", "true"}
        ]
        for row in element.iter(f"{MAIN}tr")
    ]
    return markdown_tables(rows)


def _chart(part: Part) -> Iterator[str]:
    """Yield the titles of a chart and its axes, and a table of its values with a column for each series."""
    space = part.root
    for title in space.iter(f"{_CHART}title", f"{_LATER_CHART}title"):
        stored = title.iter(f"{_CHART}v", f"{_LATER_CHART}v")
        if text := " ".join(paragraphs(title, part)) or " ".join(value.text or "" for value in stored):
            yield text
    named = [(_series_name(series), *_points(series)) for series in space.iter(f"{_CHART}ser")]
    named += [_later_series(series, space) for series in space.iter(f"{_LATER_CHART}series")]
    for _, group in groupby(named, lambda series: series[1]):
        same = list(group)
        labels = same[0][1]
        places = sorted({*labels, *(place for _, _, values in same for place in values)})
        rows = [["", *(name for name, _, _ in same)]]
        rows += [[labels.get(at, ""), *(values.get(at, "") for _, _, values in same)] for at in places]
        yield markdown_tables(rows)


def _series_name(series: "Element") -> str:
    return " ".join(filter(None, (value.text for value in series.iterfind(f"{_CHART}tx//{_CHART}v"))))


def _points(series: "Element") -> tuple[dict[int, str], dict[int, str]]:
    """Return the categories and the values of a series by their places."""
    labels, values = (
        next((_cached(element) for name in names for element in series.iterfind(_CHART + name)), {})
        for names in (("cat", "xVal"), ("val", "yVal"))
    )
    return labels, values


def _cached(data: "Element") -> dict[int, str]:
    """Return the stored points of a sequence; those of several levels are joined, the outermost first."""
    code = data.findtext(f".//{_CHART}formatCode") or "General"
    is_number = next(data.iter(f"{_CHART}numCache", f"{_CHART}numLit"), None) is not None
    levels = list(data.iter(f"{_CHART}lvl"))
    texts = {
        int(point.get("idx", "0")): _number(point.findtext(f"{_CHART}v"), code)
        if is_number
        else point.findtext(f"{_CHART}v") or ""
        for point in (levels[0] if levels else data).iter(f"{_CHART}pt")
    }
    for level in levels[1:]:
        begins = {int(point.get("idx", "0")): point.findtext(f"{_CHART}v") or "" for point in level.iter(f"{_CHART}pt")}
        above = {at: begins[max(filter(at.__ge__, begins))] for at in texts if any(map(at.__ge__, begins))}
        texts = {at: f"{above.get(at, '')} {text}".strip() for at, text in texts.items()}
    return texts


def _number(text: str | None, code: str) -> str:
    from openpyxl.styles.numbers import is_date_format
    from openpyxl.utils.datetime import from_excel

    try:
        value = float(text or "")
        return cell_text(from_excel(value) if is_date_format(code) else value, code)
    except (ValueError, OverflowError):
        return text or ""


def _later_series(series: "Element", space: "Element") -> tuple[str, dict[int, str], dict[int, str]]:
    """Return the name, the categories and the values of a series of a newer kind of chart, such as a waterfall."""
    name = series.findtext(f"{_LATER_CHART}tx//{_LATER_CHART}v") or ""
    data_id = next((element.get("val") for element in series.iter(f"{_LATER_CHART}dataId")), None)
    data = next((data for data in space.iter(f"{_LATER_CHART}data") if data.get("id") == data_id), None)
    columns: list[dict[int, str]] = []
    for kind in ("strDim", "numDim"):
        level = None if data is None else data.find(f"{_LATER_CHART}{kind}/{_LATER_CHART}lvl")
        points = [] if level is None else level.iter(f"{_LATER_CHART}pt")
        columns.append({int(point.get("idx", "0")): point.text or "" for point in points})
    return name, columns[0], columns[1]


def _diagram(part: Part) -> Iterator[str]:
    """Yield the texts of a diagram as one list, each below the one to which it belongs."""
    points = {point.get("modelId"): point for point in part.root.iter(f"{_DIAGRAM}pt")}
    below: dict[str | None, list[tuple[int, str | None]]] = {}
    for connection in part.root.iter(f"{_DIAGRAM}cxn"):
        if connection.get("type", "parOf") == "parOf":
            child = int(connection.get("srcOrd", "0")), connection.get("destId")
            below.setdefault(connection.get("srcId"), []).append(child)
    linked = {name for names in below.values() for _, name in names}
    lines: list[str] = []
    waiting = [(name, 0) for name in reversed(points) if name not in linked]
    while waiting:
        name, depth = waiting.pop()
        if (point := points.pop(name, None)) is None:
            continue
        is_text = point.get("type", "node") in ("node", "asst")
        if is_text and (text := " ".join(paragraphs(point, part))):
            lines.append(f"{'  ' * depth}- {text}")
        children = sorted(below.get(name, []), key=lambda child: child[0], reverse=True)
        waiting += [(child_name, depth + is_text) for _, child_name in children]
    if lines:
        yield "\n".join(lines)
