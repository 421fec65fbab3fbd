"""Text of scanned pages by OCR: pages are rendered by PDFium and read by Tesseract (extra `ocr`).

Both run in the reading process, within its limits of time and memory.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sleuth.tools.errors import DocumentError, MissingExtra
from sleuth.tools.optional_imports import DISTRIBUTION, extra
from sleuth.tools.text import normalize

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

DPI = 200
"""Resolution of the rendered page; Tesseract's documentation advises 200 to 300."""
POINTS_PER_INCH = 72
MAX_PIXELS = 40_000_000
"""A page with more is rendered at a lower resolution."""
INSTALL = "Install Tesseract (Debian: apt install tesseract-ocr) and the extra: pip install"


def read_scanned_pages(data: bytes, numbers: Sequence[int], languages: str) -> dict[int, str]:
    """Return the texts of pages of a PDF file.

    Args:
        data: the file.
        numbers: the pages, counted from 0.
        languages: Tesseract's names of the languages on the pages, such as "eng+deu".

    Raises:
        MissingExtra: PDFium, Tesseract or the interface to it is not installed.
        DocumentError: Tesseract lacks a language, or fails.
    """
    with extra("ocr", "Reading scanned pages"):
        import pypdfium2
        import pytesseract
    try:
        document = pypdfium2.PdfDocument(data)
        try:
            return {number: _read(document[number], languages) for number in numbers}
        finally:
            document.close()
    except pytesseract.TesseractNotFoundError as error:
        raise MissingExtra(f"Tesseract is not installed. {advice()}") from error
    except (pytesseract.TesseractError, pypdfium2.PdfiumError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise DocumentError(
            f"has pages without text that OCR cannot read ({reason:.200}). Check SLEUTH_OCR_LANGUAGES ({languages})."
        ) from error


def advice() -> str:
    """Return the advice for a file with scanned pages where OCR is not installed."""
    return f"{INSTALL} '{DISTRIBUTION}[ocr]'."


def _read(page: "PdfPage", languages: str) -> str:
    import pytesseract

    width, height = (size / POINTS_PER_INCH for size in page.get_size())
    resolution = min(DPI, (MAX_PIXELS / max(width * height, 1e-9)) ** 0.5)
    image = page.render(scale=resolution / POINTS_PER_INCH, grayscale=True).to_pil()
    return normalize(str(pytesseract.image_to_string(image, lang=languages))).strip()
