"""Text out of PDF and Word files."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Place, Properties, Section
from sleuth.tools.documents.formats.scanned_pages import advice, read_scanned_pages
from sleuth.tools.documents.formats.tables import markdown_tables
from sleuth.tools.errors import DocumentError, MissingExtra
from sleuth.tools.text import normalize, single_line, title_from, unwrap_lines

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.oxml.xmlchemy import BaseOxmlElement
    from pypdf import PageObject, PdfReader

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_HYPHENATED = re.compile(r"(?<=[^\W\d_]{2})[-\u2010]\n(?=[^\W\d_])")
_TABLE = re.compile(r"^[^\n|]+(?: \| [^\n|]+)+(?:\n[^\n|]+(?: \| [^\n|]+)+)+$", re.MULTILINE)
_PAINTS = re.compile(rb"(?:^|\s)(?:Do|EI|[fFBbSs]\*?|sh)(?:\s|$)")
"""Operators of a page that show a picture or draw a shape."""
_NO_TITLE = re.compile(r"^(untitled|\(?anonymous\)?|microsoft word - .*|.*\.(docx?|pdf|tex|dvi|indd))$", re.IGNORECASE)
DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Errors that damaged files cause in parsers: a missing key, a wrong type, deep nesting."""


def read_pdf(data: bytes, ocr_languages: str = "eng") -> Content:
    """Return the title and the pages; rows of cells become Markdown tables. Pages without text are read by OCR.

    Raises:
        DocumentError: the file is damaged or encrypted, or has no text and OCR is not installed.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):  # many files have an empty password
            raise DocumentError("is encrypted. Save a copy without a password.")
        texts = [_tidy(_page_text(page)) for page in reader.pages]
        scanned = [number for number, text in enumerate(texts) if not text.strip() and _is_drawn(reader.pages[number])]
        title = title_from(str(reader.metadata.title or "")) if reader.metadata else None
        properties = _pdf_properties(reader)
    except (PyPdfError, DependencyError, *DAMAGE) as error:
        raise DocumentError("is not a PDF, or is damaged. Print it to a new PDF, or leave it out.") from error
    note = _read_scanned(data, texts, scanned, ocr_languages) if scanned else ""
    first = next((text for text in texts if text), None)
    if first is None:
        raise DocumentError(f"has no text in it, and is perhaps a scan: {note or 'its pages are empty.'}")
    pages = [Section(text, Place("p.", number)) for number, text in enumerate(texts, start=1)]
    title = title if title and not _NO_TITLE.match(title) else title_from(first.partition("\n")[0])
    return Content(title, pages, properties, note)


def _is_drawn(page: "PageObject") -> bool:
    """Return whether a page has any content, such as a picture or the outlines of letters."""
    contents = page.get_contents()
    return contents is not None and _PAINTS.search(contents.get_data()) is not None


def _read_scanned(data: bytes, texts: list[str], scanned: Sequence[int], languages: str) -> str:
    """Fill in the texts of scanned pages, and return a remark that names them."""
    names = ", ".join(f"{number + 1}" for number in scanned)
    try:
        found = read_scanned_pages(data, scanned, languages)
    except MissingExtra:
        return f"p. {names} cannot be read without OCR. {advice()}"
    for number, text in found.items():
        texts[number] = text
    return f"p. {names} read by OCR."


def _pdf_properties(reader: "PdfReader") -> Properties:
    found: Mapping[str, Any] = reader.metadata or {}
    return Properties(author=found.get("/Author"), date=found.get("/CreationDate"), tags=found.get("/Keywords"))


def _tidy(page: str) -> str:
    """Return the text of a page without wrapped lines and hyphens, with its tables."""
    lines = normalize(page.strip().translate(_LIGATURES)).split("\n")
    text = unwrap_lines(_HYPHENATED.sub("", "\n".join(line.strip(" \t") for line in lines)))
    return _TABLE.sub(lambda found: _markdown(found[0]), text)


def _markdown(lines: str) -> str:
    """Return lines of cells as a Markdown table, if all have the same number of cells."""
    rows = [line.split(" | ") for line in lines.split("\n")]
    return markdown_tables(rows) if len({len(row) for row in rows}) == 1 else lines


def _page_text(page: "PageObject") -> str:
    """Return the page in reading order; positions separate paragraphs and table rows."""
    pieces: list[str] = []
    layout = _Layout()

    def add(text: str, outer: list[float], inner: list[float], _font: object, size: float) -> None:
        if text.strip():
            x = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
            y = inner[4] * outer[1] + inner[5] * outer[3] + outer[5]
            separator = layout.separator(x, y, size)
            if pieces and pieces[-1].endswith("\n"):
                pieces[-1] = pieces[-1].rstrip("\n") + separator
        if text:
            pieces.append(text)

    page.extract_text(visitor_text=add)
    return "".join(pieces)


class _Layout:
    """The layout of a page by the positions of its pieces, in points from the lower left."""

    def __init__(self) -> None:
        self.x = self.y = 0.0
        self.in_row = False

    def separator(self, x: float, y: float, size: float) -> str:
        """Return the text between this piece and the previous one, if that one ended a line."""
        right, down, line = x - self.x, self.y - y, 1.6 * size
        self.x, self.y = x, y
        # The next cell is to the right, at the height of the first line of this one.
        if right > 0 and -5 * line < down < 1:
            self.in_row = True
            return " | "
        if self.in_row and abs(right) < 1 and 0 < down <= line:
            return " "
        paragraph = down > (2 * line if self.in_row else line)
        self.in_row = False
        return "\n\n" if paragraph else "\n"


def read_docx(data: bytes) -> Content:
    """Return paragraphs and tables in order as Markdown; the title is the document's own, or its first heading."""
    from docx import Document
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    if data.startswith(_OLE):
        raise DocumentError("is encrypted, or in the old .doc format. Save it as .docx without a password.")
    try:
        open_zip(data, kind="a Word file").close()
        document = Document(BytesIO(data))
        blocks = list(_blocks(document))
        title = title_from(document.core_properties.title)
        properties = office_properties(document.core_properties)
    except (OpcError, LxmlError, *DAMAGE) as error:
        raise DocumentError("is not a Word file, or is damaged. Save it again as .docx, or leave it out.") from error
    first_heading = next((block.lstrip("# ") for block in blocks if block.startswith("#")), None)
    return Content(title or title_from(first_heading), [Section("\n\n".join(blocks))], properties)


def office_properties(found: Any) -> Properties:  # noqa: ANN401 - of python-docx, python-pptx or openpyxl
    """Return the core properties of an Office file."""
    author = getattr(found, "author", None) or getattr(found, "creator", None)
    return Properties(author=author, date=found.modified or found.created, tags=found.keywords)


def _blocks(document: "WordDocument") -> Iterator[str]:
    """Yield the text of each paragraph and table, including those in content controls, which python-docx skips."""
    outermost = "not(ancestor::w:tbl) and not(ancestor::w:p)"
    styles = {style.style_id: style.name or "" for style in document.styles}
    for element in document.element.body.xpath(f".//w:p[{outermost}] | .//w:tbl[{outermost}]"):
        block = _table(element) if element.tag.endswith("}tbl") else _paragraph(element, styles)
        if block:
            yield block


def _table(table: "BaseOxmlElement") -> str:
    rows: list[list[str]] = []
    for row in table.xpath("./w:tr | ./w:sdt/w:sdtContent/w:tr"):
        cells = row.xpath("./w:tc | ./w:sdt/w:sdtContent/w:tc")
        rows.append([" ".join(_words(paragraph) for paragraph in cell.xpath(".//w:p")) for cell in cells])
    return markdown_tables(rows)


def _paragraph(element: "BaseOxmlElement", styles: dict[str, str]) -> str:
    """Return one paragraph with the Markdown mark of its style."""
    text = _words(element).strip()
    name = styles.get(next(iter(element.xpath("./w:pPr/w:pStyle/@w:val")), ""), "")
    if not text:
        return ""
    if heading := re.fullmatch(r"Heading ([1-6])", name):
        return f"{'#' * int(heading[1])} {single_line(text)}"
    if name == "Title":
        return f"# {single_line(text)}"
    return f"- {text}" if name.startswith("List") else text


def _words(paragraph: "BaseOxmlElement") -> str:
    """Return all text of a paragraph, including insertions and links, without deletions and fall-back copies."""
    once = "[not(ancestor::*[local-name()='Fallback'])]"
    nodes = paragraph.xpath(f".//w:t{once} | .//w:tab{once} | .//w:br{once} | .//w:noBreakHyphen{once}")
    marks = {"tab": "\t", "br": "\n", "noBreakHyphen": "-"}
    return "".join(marks.get(node.tag.rpartition("}")[2], node.text or "") for node in nodes)
