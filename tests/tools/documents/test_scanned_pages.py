"""OCR of scanned pages, with Tesseract."""

import shutil
from io import BytesIO
from pathlib import Path

import pytest
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.formats.binary_formats import read_pdf
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.errors import DocumentError

pypdfium2 = pytest.importorskip("pypdfium2", reason="the extra `ocr` is not installed")
pytest.importorskip("pytesseract", reason="the extra `ocr` is not installed")
has_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None,
    reason="Tesseract is not installed: apt-get install tesseract-ocr tesseract-ocr-eng",
)

LINES = ("The Pellowrig Light was built by Bastian Oake", "and first lit on 1 October 1861.")
TYPED = "A typed page about lights."


def typed(*pages: tuple[str, ...]) -> bytes:
    out = BytesIO()
    canvas = Canvas(out)
    for lines in pages:
        canvas.setFont("Helvetica", 20)
        for number, line in enumerate(lines):
            canvas.drawString(60, 700 - 40 * number, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def scanned(first: str = "") -> bytes:
    """Return a PDF with a picture of a page and an empty page; `first` is the text of a typed page before them."""
    out = BytesIO()
    canvas = Canvas(out)
    if first:
        canvas.drawString(60, 700, first)
        canvas.showPage()
    for page in pypdfium2.PdfDocument(typed(LINES)):
        canvas.drawImage(ImageReader(page.render(scale=200 / 72).to_pil()), 0, 0, *page.get_size())
        canvas.showPage()
    canvas.showPage()
    canvas.save()
    return out.getvalue()


@has_tesseract
def test_scanned_page_is_read_and_named() -> None:
    found = read_pdf(scanned(first=TYPED))
    first, second, *_ = found.sections
    assert first.text == TYPED
    assert "built by Bastian Oake" in second.text
    assert "1 October 1861" in second.text
    assert second.place is not None
    assert second.place.first == 2
    assert found.note == "p. 2 read by OCR."


@has_tesseract
def test_scan_is_read_by_the_reading_process(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scanned())
    reader, wrong = FileReader(), FileReader(bounds=Bounds(ocr_languages="nosuchlanguage"))
    try:
        loaded = reader.read(path)
        assert "Bastian Oake" in loaded.text
        assert loaded.note == "p. 1 read by OCR."
        with pytest.raises(DocumentError, match="SLEUTH_OCR_LANGUAGES"):
            wrong.read(path)
    finally:
        reader.close()
        wrong.close()


@has_tesseract
def test_drawing_without_words_has_no_text() -> None:
    out = BytesIO()
    canvas = Canvas(out)
    canvas.rect(10, 10, 100, 100)
    canvas.save()
    with pytest.raises(DocumentError, match=r"no text in it.*p\. 1 read by OCR."):
        read_pdf(out.getvalue())


def test_missing_tesseract_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocumentError, match=r"p\. 1 cannot be read without OCR.*apt install tesseract-ocr"):
        read_pdf(scanned())
    mixed = read_pdf(scanned(first=TYPED))
    assert [section.text for section in mixed.sections if section.text] == [TYPED]
    assert mixed.note.startswith("p. 2 cannot be read without OCR.")


def test_typed_page_needs_no_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert read_pdf(typed(LINES, ())).note == ""
