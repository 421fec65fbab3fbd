"""Text out of PDF files. Scanned pages are rendered by PDFium and read by Tesseract (extra `ocr`)."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain, pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.tables import markdown_tables
from sleuth.tools.errors import DISTRIBUTION, DocumentError, MissingExtra, extra
from sleuth.tools.places import Place
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
_ENDS = (".", "!", "?", ":", ";")
LEAST_LINES = 3
"""Lines of text that can be a column next to a table."""
_PAINTS = re.compile(rb"(?:^|\s)(?:Do|EI|[fFBbSs]\*?|sh)(?:\s|$)")
"""Operators of a page that show a picture or draw a shape."""
_OTHER_PROGRAM = re.compile(r"please wait|adobe (?:acrobat )?reader", re.IGNORECASE)
_NO_TITLE = re.compile(r"^(untitled|\(?anonymous\)?|microsoft word - .*|.*\.(docx?|pdf|tex|dvi|indd))$", re.IGNORECASE)


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
    return _TABLE.sub(lambda match: _markdown(match[0]), text)


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
            values = [str(item).removeprefix("/") for item in (value if isinstance(value, list) else [value]) if item]
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
        if text.strip() and (not lines or lines[-1].pieces[-1][0].endswith("\n")):
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
        return "".join(text for text, *_ in self.pieces).strip()

    @property
    def place(self) -> int:
        return round(self.x)

    @property
    def pitch(self) -> float:
        """Return the greatest distance to the next line of the same paragraph."""
        return 1.6 * self.pieces[0][3]


_Cell = list[_Line]
"""Lines below each other."""
_Row = list[_Cell]
"""Cells next to each other, from left to right: of a table, or of columns of text."""


def column_by_column(lines: list[_Line]) -> list[_Line]:
    """Return the lines of a page with the text of columns that are next to each other column by column.

    Rows of a table stay: their cells do not continue in the row below.
    """
    return [line for block in _blocks(_rows(lines)) for line in _by_column(block)]


def _rows(lines: list[_Line]) -> list[_Row]:
    rows: list[_Row] = []
    for line, following in zip_longest(lines, lines[1:]):
        last = rows[-1][-1] if rows else []
        down = last[-1].y - line.y if last else math.inf
        begins_row = following is not None and abs(following.y - line.y) < 1 and following.x > line.x + 1
        if last and line.x > last[0].x + 1 and -5 * line.pitch < down < 1:
            rows[-1].append([line])
        elif last and not begins_row and abs(line.x - last[0].x) < 1 and 0 < down <= line.pitch:
            last.append(line)
        else:
            rows.append([[line]])
    return rows


def _blocks(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Yield successive rows with cells at the same places, together with further lines of their columns."""
    block: list[_Row] = []
    places: set[int] = set()
    for row in rows:
        is_near = bool(block) and min(cell[-1].y for cell in block[-1]) - row[0][0].y < 3 * row[0][0].pitch
        shared = sum(cell[0].place in places for cell in row)
        if block and not (is_near and len(places) > 1 and shared >= min(2, len(row))):
            yield block
            block, places = [], set()
        block.append(row)
        places |= {cell[0].place for cell in row}
    if block:
        yield block


def _by_column(block: list[_Row]) -> list[_Line]:
    """Return the lines of a block, split at the first place where text or a table ends and text begins."""
    columns: dict[int, list[_Cell]] = defaultdict(list)
    for cell in chain.from_iterable(block):
        columns[cell[0].place].append(cell)
    places = sorted(columns)
    # A table has a further row below a cell of several lines.
    is_table = any(len(cell) > 1 for cells in columns.values() for cell in cells[:-1])
    texts = [[line for cell in columns[place] for line in cell] for place in places]
    are_all_text = all(_runs_on(lines) for lines in texts)
    is_certain = [_runs_on(lines, alone=True) for lines in texts]
    for at, place in enumerate(places[1:] if not is_table else (), start=1):
        if are_all_text or all(is_certain[:at]) or all(is_certain[at:]):
            left = _by_column([cells for row in block if (cells := [cell for cell in row if cell[0].place < place])])
            right = _by_column([cells for row in block if (cells := [cell for cell in row if cell[0].place >= place])])
            right[0].begins_column = True
            for side in (left, right):
                if len({line.place for line in side}) == 1:
                    _unwrap(side)
            return left + right
    return [line for row in block for cell in row for line in cell]


def _runs_on(lines: Sequence[_Line], *, alone: bool = False) -> bool:
    """Return whether lines are running text: of several words each, most continued in a line that had no room for more.

    `alone`: without text next to it, each line but the last is full, and the last one ends a sentence.
    """
    words = sorted(len(line.text.split()) for line in lines)
    near = [(line.text, below.text) for line, below in pairwise(lines) if line.y - below.y <= line.pitch]
    breaks = [(text, below) for text, below in near if not text.endswith(_ENDS)]
    widest = max(len(line.text) for line in lines)
    full = sum(len(f"{text} {below.split()[0]}") > 0.9 * widest for text, below in breaks)
    lower = sum(below[:1].islower() for _, below in breaks)
    if words[len(words) // 2] < 4 or 2 * len(breaks) < len(lines) - 1 or 5 * lower < 2 * len(breaks) or not breaks:
        return False
    if alone:
        return len(lines) >= LEAST_LINES and full == len(breaks) and lines[-1].text.endswith(_ENDS)
    return full >= len(breaks) - len(lines) // 4


def _unwrap(column: Sequence[_Line]) -> None:
    """Join the lines of a column that continue in the line below."""
    widest = max(len(line.text) for line in column)
    for line, below in pairwise(column):
        is_full = len(line.text) >= 0.7 * widest or below.text[:1].islower()
        if is_full and below.text[:1].isalpha() and not line.text.endswith((*_ENDS, "-", "\u2010")):
            *pieces, (last, x, y, size) = line.pieces
            line.pieces = [*pieces, (last.rstrip("\n") + " ", x, y, size)]


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
