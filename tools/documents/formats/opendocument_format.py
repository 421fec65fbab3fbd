"""Text out of OpenDocument texts, presentations and spreadsheets."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING
from zipfile import ZipFile

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.equations import equation
from sleuth.tools.documents.formats.excel_format import drawing_section, sheet_sections
from sleuth.tools.documents.formats.marks import HIDDEN, Run, box, remark, written
from sleuth.tools.documents.formats.office_parts import Part
from sleuth.tools.documents.formats.tables import Cells, Span, mark_hidden, markdown_tables
from sleuth.tools.places import Place
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
_META, _DUBLIN_CORE = f"{_ODF}meta:1.0}}", "{http://purl.org/dc/elements/1.1/}"
_OFFICE, _TEXT, _TABLE, _DRAW = f"{_ODF}office:1.0}}", f"{_ODF}text:1.0}}", f"{_ODF}table:1.0}}", f"{_ODF}drawing:1.0}}"
_STYLE, _CHART, _SHOW = f"{_ODF}style:1.0}}", f"{_ODF}chart:1.0}}", f"{_ODF}presentation:1.0}}"
_SVG, _LINK = f"{_ODF}svg-compatible:1.0}}", "{http://www.w3.org/1999/xlink}href"
_MATH = "{http://www.w3.org/1998/Math/MathML}math"
_SPACES = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_FRAMES = (f"{_DRAW}frame", f"{_DRAW}custom-shape", f"{_DRAW}g")
_HIDDEN = ("collapse", "filter")
_LEFT_OUT = (f"{_TEXT}tracked-changes", f"{_TABLE}tracked-changes", f"{_OFFICE}forms", f"{_TEXT}hidden-text")
MAX_REPEATED = 1_000
"""Repeated cells of a spreadsheet beyond this number are formatting, not values."""


def read_odf(data: bytes) -> Content:
    """Return the text of an OpenDocument text, presentation or spreadsheet.

    Hidden slides, sheets, rows and columns are marked; hidden and deleted text is left out.
    """
    with open_zip(data, kind="an OpenDocument file") as archive:
        about = Part(archive, "meta.xml").root
        title = about.findtext(f".//{_DUBLIN_CORE}title")
        author = about.findtext(f".//{_META}initial-creator") or about.findtext(f".//{_DUBLIN_CORE}creator")
        date = about.findtext(f".//{_DUBLIN_CORE}date") or about.findtext(f".//{_META}creation-date")
        tags = [keyword.text for keyword in about.iter(f"{_META}keyword")]
        return Content(title_from(title), list(_Document(archive).sections()), author, date, tags)


class _Document:
    """The content of a document, or of an object in it."""

    def __init__(self, archive: ZipFile, folder: str = "") -> None:
        from lxml.etree import strip_elements

        self._archive, self._folder = archive, folder
        self.root, self._common = (Part(archive, f"{folder}{name}.xml").root for name in ("content", "styles"))
        strip_elements(self.root, *_LEFT_OUT, with_tail=False)
        styles = chain(self._common.iter(f"{_STYLE}style"), self.root.iter(f"{_STYLE}style"))
        self._styles = {(style.get(f"{_STYLE}family"), style.get(f"{_STYLE}name")): style for style in styles}
        self._property = lru_cache(maxsize=None)(self._find_property)

    def sections(self) -> Iterator[Section]:
        body = next(self.root.iterfind(f"{_OFFICE}body"))
        pages, sheets = list(body.iter(f"{_DRAW}page")), body.find(f"{_OFFICE}spreadsheet")
        if pages:
            yield from (
                Section("\n\n".join(self._page(page)), Place("slide", n)) for n, page in enumerate(pages, start=1)
            )
        elif sheets is not None:
            for sheet in sheets.iterchildren(f"{_TABLE}table"):
                yield from self._sheet(sheet)
        else:
            yield Section("\n\n".join(self._blocks(body)))
            for kind in ("header", "footer"):
                texts = ("\n".join(self._blocks(part)) for part in self._common.iter(_STYLE + kind))
                yield Section("\n\n".join(dict.fromkeys(texts)), Place(f"page {kind}"))

    def _find_property(self, family: str, style: str | None, name: str) -> str:
        """Return a property of a style, perhaps from the style on which it is based."""
        for _ in range(20):
            definition = self._styles.get((family, style))
            if definition is None:
                return ""
            if value := next(filter(None, (element.get(name) for element in definition)), ""):
                return value
            style = definition.get(f"{_STYLE}parent-style-name")
        return ""

    def _page(self, page: "Element") -> Iterator[str]:
        if self._property("drawing-page", page.get(f"{_DRAW}style-name"), f"{_SHOW}visibility") == "hidden":
            yield HIDDEN
        yield from self._blocks(page)

    def _sheet(self, sheet: "Element") -> Iterator[Section]:
        name = sheet.get(f"{_TABLE}name", "Sheet")
        if self._property("table", sheet.get(f"{_TABLE}style-name"), f"{_TABLE}display") == "false":
            name = f"{name} {HIDDEN}"
        frames = [frame for frame in sheet.iter(*_FRAMES) if frame.getparent().tag not in _FRAMES]
        for frame in frames:
            frame.getparent().remove(frame)
        rows, headers = self._rows(sheet)
        yield from sheet_sections(name, rows, headers=headers)
        yield from drawing_section(name, self._blocks(frames))

    def _blocks(self, elements: Iterable["Element"]) -> Iterator[str]:
        """Yield headings, paragraphs, list items, tables and the text of objects as Markdown."""
        for element in elements:
            yield from _BLOCKS.get(element.tag, _Document._inner)(self, element)

    def _inner(self, element: "Element") -> Iterator[str]:
        if element.get(f"{_TEXT}display") != "none":
            yield from self._blocks(element)

    def _paragraph(self, paragraph: "Element") -> Iterator[str]:
        """Yield a paragraph or heading, then its notes and comments and the text of its frames."""
        after: list[Iterable[str]] = []
        marks = self._marks("paragraph", paragraph, Run(""))
        if text := written(self._runs(paragraph, marks, after)).strip():
            level = min(int(paragraph.get(f"{_TEXT}outline-level", "1")), 6)
            yield f"{'#' * level} {title_from(text)}" if paragraph.tag == f"{_TEXT}h" else text
        yield from filter(None, chain.from_iterable(after))

    def _runs(self, element: "Element", marks: Run, after: list[Iterable[str]]) -> Iterator[Run]:
        yield marks._replace(text=element.text or "")
        for child in element:
            if child.tag in _SPACES:
                yield marks._replace(text=_SPACES[child.tag] * min(int(child.get(f"{_TEXT}c", "1")), MAX_REPEATED))
            elif child.tag in _BLOCKS:
                equations = list(self._equations(child))
                yield from (marks._replace(text=f" {text} ") for text in equations)
                after.append([] if equations else self._blocks([child]))
            elif child.tag.endswith("}fieldmark") and "FORMCHECKBOX" in "".join(child.attrib.values()):
                yield marks._replace(text=box(checked=any("true" in option.attrib.values() for option in child)))
            else:
                yield from self._runs(child, self._marks("text", child, marks), after)
            yield marks._replace(text=child.tail or "")

    def _marks(self, family: str, element: "Element", marks: Run) -> Run:
        """Return the marks of the text in an element, which may add some to those around it."""
        name = element.get(f"{_TEXT}style-name")
        position = self._property(family, name, f"{_STYLE}text-position")
        lines = [self._property(family, name, f"{_STYLE}text-line-through-{kind}") for kind in ("style", "type")]
        return marks._replace(
            raised=marks.raised or bool(re.match(r"super|[1-9]", position)),
            struck=marks.struck or any(line not in ("", "none") for line in lines),
            hidden=marks.hidden or self._property(family, name, f"{_TEXT}display") == "none",
            address=element.get(_LINK) or marks.address,
        )

    def _item(self, item: "Element") -> Iterator[str]:
        yield from (f"- {block}" for block in self._blocks(item))

    def _remark(self, note: "Element") -> Iterator[str]:
        """Yield a footnote, an endnote or a comment."""
        body = note.find(f"{_TEXT}note-body")
        kind = note.get(f"{_TEXT}note-class", "footnote").capitalize() if body is not None else "Comment"
        author = note.findtext(f"{_DUBLIN_CORE}creator") or "" if body is None else ""
        yield remark(kind, " ".join(self._blocks(note if body is None else body)), author)

    def _notes(self, notes: "Element") -> Iterator[str]:
        """Yield the notes of a slide."""
        text = "\n".join(self._blocks(notes))
        yield f"Notes: {text}" if text else ""

    def _frame(self, frame: "Element") -> Iterator[str]:
        is_title = frame.get(f"{_SHOW}class") == "title"
        yield from (f"## {title_from(block)}" if is_title else block for block in self._blocks(frame))

    def _description(self, element: "Element") -> Iterator[str]:
        yield single_line(element.text or "")

    def _equations(self, frame: "Element") -> Iterator[str]:
        """Yield the equations among the objects of a frame."""
        for element in frame.iter(f"{_DRAW}object"):
            embedded = Part(self._archive, f"{self._folder_of(element)}content.xml").root
            yield from (equation(math) for math in [*element.iter(_MATH), *embedded.iter(_MATH)])

    def _folder_of(self, element: "Element") -> str:
        return f"{self._folder}{element.get(_LINK, '').removeprefix('./').strip('/')}/"

    def _object(self, element: "Element") -> Iterator[str]:
        """Yield an equation, or the titles and the values of a chart."""
        yield from self._equations(element)
        chart = _Document(self._archive, self._folder_of(element))
        for title in chart.root.iter(f"{_CHART}title", f"{_CHART}subtitle"):
            yield " ".join(chart._blocks(title))
        for table in chart.root.iter(f"{_TABLE}table"):
            yield from chart._table(table)

    def _table(self, table: "Element") -> Iterator[str]:
        rows, headers = self._rows(table)
        if next(table.iterancestors(f"{_TABLE}table-cell"), None) is None:
            yield markdown_tables((cells for _, cells in rows), headers=headers)
        else:
            yield from ("; ".join(cell for cell in cells if isinstance(cell, str) and cell) for _, cells in rows)

    def _rows(self, table: "Element") -> tuple[list[tuple[int, Cells]], int]:
        """Return the rows of a table with their numbers, and the number of header rows if there are several.

        Cells that are repeated are written out, unless they are empty to the end.
        """
        rows: list[tuple[int, list[str | Span | None]]] = []
        hidden: list[int] = []
        number, headers = 1, 0
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not table:
                continue
            cells = [cell for element in row for cell in self._cells(element)]
            while cells and cells[-1] == "":
                cells.pop()
            repeated = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
            copies = min(repeated, MAX_REPEATED) if cells else 0
            hidden += range(len(rows), len(rows) + copies) if row.get(f"{_TABLE}visibility") in _HIDDEN else ()
            headers += copies if row.getparent().tag == f"{_TABLE}table-header-rows" else 0
            rows += [(number + at, list(cells)) for at in range(copies)]
            number += repeated
        width = max((len(cells) for _, cells in rows), default=0)
        padded = [[*cells, *repeat("", width - len(cells))] for _, cells in rows]
        mark_hidden(padded, hidden, _hidden_columns(table, width))
        numbers = (number for number, _ in rows)
        return list(zip(numbers, padded, strict=True)), headers if headers > 1 else 0

    def _cells(self, cell: "Element") -> Iterator[str | Span | None]:
        """Yield a cell as often as it is repeated; the comment on it comes last."""
        text: str | Span | None = None
        if cell.tag == f"{_TABLE}table-cell":
            text = " ".join(self._blocks(sorted(cell, key=lambda child: child.tag == f"{_OFFICE}annotation"))).strip()
            spanned = [int(cell.get(f"{_TABLE}number-{name}-spanned", "1")) for name in ("columns", "rows")]
            text = Span(text, *spanned) if max(spanned) > 1 else text
        elif cell.tag != f"{_TABLE}covered-table-cell":
            return
        yield from repeat(text, min(int(cell.get(f"{_TABLE}number-columns-repeated", "1")), MAX_REPEATED))


def _hidden_columns(table: "Element", width: int) -> Iterator[int]:
    at = 0
    for column in table.iter(f"{_TABLE}table-column"):
        end = at + int(column.get(f"{_TABLE}number-columns-repeated", "1"))
        if column.get(f"{_TABLE}visibility") in _HIDDEN:
            yield from range(at, min(end, width))
        at = end


_BLOCKS: dict[object, Callable[[_Document, "Element"], Iterator[str]]] = {
    **dict.fromkeys((f"{_TEXT}p", f"{_TEXT}h"), _Document._paragraph),
    **dict.fromkeys((f"{_TEXT}note", f"{_OFFICE}annotation"), _Document._remark),
    **dict.fromkeys((f"{_DRAW}frame", f"{_DRAW}custom-shape", f"{_DRAW}g", f"{_DRAW}text-box"), _Document._frame),
    **dict.fromkeys((f"{_SVG}desc", f"{_SVG}title"), _Document._description),
    f"{_TEXT}list-item": _Document._item,
    f"{_TABLE}table": _Document._table,
    f"{_DRAW}object": _Document._object,
    f"{_SHOW}notes": _Document._notes,
}
"""Readers of the elements that are blocks of a text."""
