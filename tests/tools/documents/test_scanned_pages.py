"""OCR of scanned pages, with Tesseract."""

import shutil
from pathlib import Path

import pytest
from made_files import drawn
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.formats.pdf_format import read_pdf
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import Place

pypdfium2 = pytest.importorskip("pypdfium2", reason="the extra `ocr` is not installed")
pytest.importorskip("pytesseract", reason="the extra `ocr` is not installed")
has_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None,
    reason="Tesseract is not installed: apt-get install tesseract-ocr tesseract-ocr-eng",
)

LINES = ("The Pellowrig Light was built by Bastian Oake", "and first lit on 1 October 1861.")
TYPED = "A typed page about lights."


def typed(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 20)
    for number, line in enumerate(LINES):
        canvas.drawString(60, 700 - 40 * number, line)


def scanned(first: str = "") -> bytes:
    """Return a PDF with a picture of a page and an empty page; `first` is the text of a typed page before them."""

    def draw(canvas: Canvas) -> None:
        if first:
            canvas.drawString(60, 700, first)
            canvas.showPage()
        (page,) = pypdfium2.PdfDocument(drawn(typed))
        canvas.drawImage(ImageReader(page.render(scale=200 / 72).to_pil()), 0, 0, *page.get_size())
        canvas.showPage()
        canvas.showPage()

    return drawn(draw)


@has_tesseract
def test_scanned_page_is_read_and_named() -> None:
    found = read_pdf(scanned(first=TYPED))
    first, second, *_ = found.sections
    assert first.text == TYPED
    assert "built by Bastian Oake" in second.text and "1 October 1861" in second.text
    assert second.place == Place("p.", 2)
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
    with pytest.raises(DocumentError, match=r"no text in it.*p\. 1 read by OCR."):
        read_pdf(drawn(lambda canvas: canvas.rect(10, 10, 100, 100)))


def test_missing_tesseract_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocumentError, match=r"p\. 1 cannot be read without OCR.*apt install tesseract-ocr"):
        read_pdf(scanned())
    mixed = read_pdf(scanned(first=TYPED))
    assert [section.text for section in mixed.sections if section.text] == [TYPED]
    assert mixed.note.startswith("p. 2 cannot be read without OCR.")
    assert read_pdf(drawn(typed)).note == "", "a typed page needs no OCR"
