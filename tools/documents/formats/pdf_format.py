"""Text out of PDF files. Scanned pages are rendered by PDFium and read by Tesseract (extra `ocr`)."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.content import Content, Place, Section, damage_as
from sleuth.tools.documents.formats.tables import markdown_tables
from sleuth.tools.errors import DocumentError, MissingExtra
from sleuth.tools.optional_imports import DISTRIBUTION, extra
from sleuth.tools.text.normalization import normalize, title_from, unwrap_lines

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader
    from pypdfium2 import PdfPage

DPI = 200
"""Resolution of the rendered page; Tesseract's documentation advises 200 to 300."""
POINTS_PER_INCH = 72
MAX_PIXELS = 40_000_000
"""A page with more is rendered at a lower resolution."""
INSTALL = f"Install Tesseract (Debian: apt install tesseract-ocr) and the extra: pip install '{DISTRIBUTION}[ocr]'."

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_HYPHENATED = re.compile(r"(?<=[^\W\d_]{2})[-\u2010]\n(?=[^\W\d_])")
_TABLE = re.compile(r"^[^\n|]+(?: \| [^\n|]+)+(?:\n[^\n|]+(?: \| [^\n|]+)+)+$", re.MULTILINE)
LEAST_LINES = 3
"""Lines next to each other that can be columns."""
_PAINTS = re.compile(rb"(?:^|\s)(?:Do|EI|[fFBbSs]\*?|sh)(?:\s|$)")
"""Operators of a page that show a picture or draw a shape."""
_OTHER_PROGRAM = re.compile(r"please wait|adobe (?:acrobat )?reader", re.IGNORECASE)
_NO_TITLE = re.compile(r"^(untitled|\(?anonymous\)?|microsoft word - .*|.*\.(docx?|pdf|tex|dvi|indd))$", re.IGNORECASE)


@damage_as("is not a PDF, or is damaged. Print it to a new PDF, or leave it out.")
def read_pdf(data: bytes, ocr_languages: str = "eng") -> Content:
    """Return the title and the pages; rows of cells become Markdown tables. Pages without text are read by OCR.

    Raises:
        DocumentError: the file is damaged or encrypted, or has no text and OCR is not installed.
    """
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):  # many files have an empty password
        raise DocumentError("is encrypted. Save a copy without a password.")
    texts = ["\n\n".join(filter(None, [_tidy(_page_text(page)), *_annotations(page)])) for page in reader.pages]
    if _needs_adobe(reader, texts):
        raise DocumentError("is a form (XFA) that only Adobe Reader shows. Print it there to a new PDF.")
    scanned = [number for number, text in enumerate(texts) if not text.strip() and _is_drawn(reader.pages[number])]
    about: Mapping[str, Any] = reader.metadata or {}
    title = title_from(str(reader.metadata.title or "")) if reader.metadata else None
    properties = about.get("/Author"), about.get("/CreationDate"), about.get("/Keywords")
    note = _read_scanned(data, texts, scanned, ocr_languages) if scanned else ""
    first = next((text for text in texts if text), None)
    if first is None:
        raise DocumentError(f"has no text in it, and is perhaps a scan: {note or 'its pages are empty.'}")
    pages = [Section(text, place) for text, place in zip(texts, _places(reader), strict=True)]
    title = title if title and not _NO_TITLE.match(title) else title_from(first.partition("\n")[0])
    return Content(title, pages, *properties, note)


def _needs_adobe(reader: "PdfReader", texts: Sequence[str]) -> bool:
    """Return whether a PDF is an XFA form whose only page asks for another program."""
    form = reader.root_object.get("/AcroForm")
    return (
        form is not None and "/XFA" in form.get_object() and len(texts) == 1 and bool(_OTHER_PROGRAM.search(texts[0]))
    )


def _places(reader: "PdfReader") -> list[Place]:
    """Return the places of the pages, with the printed number of a page where that is another one."""
    try:
        labels = {number: title_from(normalize(label)) for number, label in enumerate(reader.page_labels, start=1)}
    except Exception:  # noqa: BLE001 - pypdf raises many errors for damaged labels
        labels = {}
    others = {number: label for number, label in labels.items() if label and label != f"{number}"}
    return [Place("p.", number, label=others.get(number, "")) for number in range(1, len(reader.pages) + 1)]


def _is_drawn(page: "PageObject") -> bool:
    """Return whether a page has any content, such as a picture or the outlines of letters."""
    contents = page.get_contents()
    return contents is not None and _PAINTS.search(contents.get_data()) is not None


def _read_scanned(data: bytes, texts: list[str], scanned: Sequence[int], languages: str) -> str:
    """Fill in the texts of scanned pages, and return a remark that names them.

    Raises:
        DocumentError: Tesseract lacks a language, or fails.
    """
    names = ", ".join(f"{number + 1}" for number in scanned)
    missing = f"p. {names} cannot be read without OCR. {INSTALL}"
    try:
        with extra("ocr", "Reading scanned pages"):
            import pypdfium2
            import pytesseract
    except MissingExtra:
        return missing
    try:
        document = pypdfium2.PdfDocument(data)
        for number in scanned:
            texts[number] = _ocr(document[number], languages)
    except pytesseract.TesseractNotFoundError:
        return missing
    except (pytesseract.TesseractError, pypdfium2.PdfiumError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise DocumentError(
            f"has pages without text that OCR cannot read ({reason:.200}). Check SLEUTH_OCR_LANGUAGES ({languages})."
        ) from error
    return f"p. {names} read by OCR."


def _ocr(page: "PdfPage", languages: str) -> str:
    import pytesseract

    width, height = (size / POINTS_PER_INCH for size in page.get_size())
    resolution = min(DPI, (MAX_PIXELS / max(width * height, 1e-9)) ** 0.5)
    image = page.render(scale=resolution / POINTS_PER_INCH, grayscale=True).to_pil()
    return normalize(str(pytesseract.image_to_string(image, lang=languages))).strip()


def _tidy(page: str) -> str:
    """Return the text of a page without wrapped lines and hyphens, with its tables."""
    lines = normalize(page.strip().translate(_LIGATURES)).split("\n")
    text = unwrap_lines(_HYPHENATED.sub("", "\n".join(line.strip(" \t") for line in lines)))
    return _TABLE.sub(lambda found: _markdown(found[0]), text)


def _markdown(lines: str) -> str:
    """Return lines of cells as a Markdown table, if all have the same number of cells."""
    rows = [line.split(" | ") for line in lines.split("\n")]
    return markdown_tables(rows) if len({len(row) for row in rows}) == 1 else lines


def _annotations(page: "PageObject") -> Iterator[str]:
    """Yield the values of form fields, with their names, and the notes of a page."""
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        named = annotation if "/T" in annotation else annotation.get("/Parent", annotation).get_object()
        value = named.get("/V", annotation.get("/V"))
        note = annotation.get("/Contents")
        if annotation.get("/Subtype") == "/Widget":
            values = [str(each).removeprefix("/") for each in (value if isinstance(value, list) else [value]) if each]
            if values and values != ["Off"]:
                yield f"{named.get('/T', 'Field')}: {', '.join(values)}"
        elif note and annotation.get("/Subtype") not in ("/Popup", "/Link"):
            yield f"[Note: {normalize(str(note)).strip()}]"


def _page_text(page: "PageObject") -> str:
    """Return the page in reading order; positions separate paragraphs and table rows."""
    lines: list[_Line] = []

    def add(text: str, outer: list[float], inner: list[float], _font: object, size: float) -> None:
        x = inner[4] * outer[0] + inner[5] * outer[2] + outer[4]
        y = inner[4] * outer[1] + inner[5] * outer[3] + outer[5]
        if text.strip() and (not lines or lines[-1].text.endswith("\n")):
            lines.append(_Line(x, y))
        if text and lines:
            lines[-1].pieces.append((text, x, y, size))

    page.extract_text(visitor_text=add)
    layout, pieces = _Layout(), list[str]()
    for line in column_by_column(lines):
        layout.y = math.inf if line.begins_column else layout.y
        for text, x, y, size in line.pieces:
            if text.strip():
                separator = layout.separator(x, y, size)
                if pieces and pieces[-1].endswith("\n"):
                    pieces[-1] = pieces[-1].rstrip("\n") + separator
            pieces.append(text)
    return "".join(pieces)


@dataclass
class _Line:
    """A line of a page or of one of its columns or cells: its beginning, and its pieces with position and size."""

    x: float
    y: float
    pieces: list[tuple[str, float, float, float]] = field(default_factory=list)
    begins_column: bool = False

    @property
    def text(self) -> str:
        return "".join(text for text, *_ in self.pieces)


def column_by_column(lines: list[_Line]) -> list[_Line]:
    """Return lines that run on down the columns of a page, but alternate between them, in the order of the columns.

    Rows of a table stay: their cells are short, or begin and end with sentences.
    """
    pairs = [(left, right) for left, right in pairwise(lines) if abs(left.y - right.y) < 1 and left.x < right.x]
    if len(pairs) < LEAST_LINES or not all(_runs_on([line.text for line in side]) for side in zip(*pairs, strict=True)):
        return lines
    gutter = min(right.x for _, right in pairs) - 1
    widest = max(len(left.text) for left, _ in pairs if left.x < gutter)
    ordered: list[_Line] = []
    # A line across the columns ends them.
    for is_across, group in groupby(lines, lambda line: line.x < gutter and len(line.text) > 1.3 * widest):
        block = list(group)
        if is_across:
            ordered += block
        else:
            column = [line for line in block if line.x < gutter]
            others = column_by_column([line for line in block if line.x >= gutter])
            for line, below in (*pairwise(column), *pairwise(others)):
                if _is_wrapped(line.text.rstrip(), below.text, widest):
                    *rest, (last, x, y, size) = line.pieces
                    line.pieces = [*rest, (last.rstrip("\n") + " ", x, y, size)]
            for line in others[:1]:
                line.begins_column = True
            ordered += column + others
    return ordered


def _is_wrapped(text: str, below: str, width: int) -> bool:
    """Return whether a line of a column of this width continues in the line below."""
    is_long = len(text) >= 0.7 * width or below[:1].islower()
    return is_long and below[:1].isalpha() and not text.endswith((".", "!", "?", ":", ";", "-", "\u2010"))


def _runs_on(texts: Sequence[str]) -> bool:
    """Return whether lines are running text: of several words, seldom at the end of a sentence."""
    words = sorted(len(text.split()) for text in texts)
    open_ends = sum(not text.rstrip().endswith((".", "!", "?", ":", ";")) for text in texts)
    lower = sum(text.lstrip()[:1].islower() for text in texts)
    return words[len(words) // 2] >= 4 and 2 * open_ends > len(texts) and 5 * lower >= 2 * len(texts)


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
