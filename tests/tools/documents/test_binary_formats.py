import io
from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from made_files import drawn, saved, text_of, zipped
from pypdf import PdfReader, PdfWriter
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.formats.archives import MAX_UNPACKED_BYTES
from sleuth.tools.documents.formats.pdf_format import read_pdf
from sleuth.tools.documents.formats.word_format import read_docx
from sleuth.tools.documents.loading import load
from sleuth.tools.errors import DocumentError

STYLES = getSampleStyleSheet()
SENTENCE = "The first ferry of the islands was built by Rosa Quill in the spring of 1843. "


def pdf(*parts: Flowable, title: str = "") -> bytes:
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer, title=title).build(list(parts))
    return buffer.getvalue()


def heading(text: str) -> Paragraph:
    return Paragraph(text, STYLES["Heading1"])


def prose(text: str) -> Paragraph:
    return Paragraph(text, STYLES["BodyText"])


def encrypted(data: bytes, password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def word(fill: Callable[[docx.document.Document], object]) -> bytes:
    document = docx.Document()
    fill(document)
    return saved(document)


def test_pdf_prose_flows_over_the_lines_and_keeps_its_paragraphs() -> None:
    text = text_of(read_pdf(pdf(heading("Ferries"), prose(SENTENCE * 5), prose(SENTENCE * 3))))
    assert "the spring of 1843. The first" in text
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    assert paragraphs == ["Ferries", (SENTENCE * 5).strip(), (SENTENCE * 3).strip()]


def test_pdf_table_rows_become_lines() -> None:
    cells = [
        ["Ferry", "Built", "Captain"],
        ["Heron", "1843", prose("Rosa Quill, <br/>then her sister")],
        ["Wagtail", "1851", "Ash"],
    ]
    text = text_of(read_pdf(pdf(prose(SENTENCE), Table(cells, colWidths=100), prose(SENTENCE))))
    assert "| Ferry | Built | Captain |\n| --- | --- | --- |\n| Heron | 1843 | Rosa Quill, then her sister |\n" in text
    assert "| Wagtail | 1851 | Ash |" in text


def test_pdf_pages_come_in_order_with_whole_words() -> None:
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))

    def draw(page: Canvas) -> None:
        page.setFont("Vera", 12)
        page.drawString(50, 700, "The \ufb01rst \ufb02ood")
        page.showPage()
        page.drawString(50, 700, "The keeper was an inter-")
        page.drawString(50, 688, "esting woman.")
        page.showPage()
        page.drawString(50, 700, "The end.")

    pages = ["The first flood", "The keeper was an interesting woman.", "The end."]
    assert text_of(read_pdf(drawn(draw))).split("\n\n") == pages


@pytest.mark.parametrize(
    ("metadata", "title"),
    [("The ferries of Arden", "The ferries of Arden"), ("untitled", "Ferries"), ("Microsoft Word - f.doc", "Ferries")],
)
def test_pdf_title_is_its_own_or_its_first_line(metadata: str, title: str) -> None:
    assert read_pdf(pdf(heading("Ferries"), prose(SENTENCE), title=metadata)).title == title


def test_pdf_that_opens_without_a_password_is_read() -> None:
    assert "Rosa Quill" in text_of(read_pdf(encrypted(pdf(prose(SENTENCE)), "")))


def fill(document: docx.document.Document) -> None:
    document.add_heading("Ferries", 0)
    document.add_paragraph("Two ran.")
    document.add_heading("Names", 1)
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        [*table.rows[0].cells, *table.rows[1].cells], ["Name", "Built", "Heron", "1843"], strict=True
    ):
        cell.text = text
    document.add_paragraph("")
    document.add_paragraph("sank", style="List Bullet")
    document.add_paragraph("Both “sank”.")


def test_docx_comes_as_markdown_in_order() -> None:
    content = read_docx(word(fill))
    assert content.title == "Ferries"
    table = "| Name | Built |\n| --- | --- |\n| Heron | 1843 |"
    assert text_of(content).split("\n\n") == ["# Ferries", "Two ran.", "# Names", table, "- sank", "Both “sank”."]

    def named(document: docx.document.Document) -> None:
        fill(document)
        document.core_properties.title = "The ferries of Arden"

    assert read_docx(word(named)).title == "The ferries of Arden"


def bomb() -> bytes:
    data = bytearray(zipped({"word/document.xml": b"a"}))
    size = data.index(b"PK\x01\x02") + 24
    data[size : size + 4] = (MAX_UNPACKED_BYTES + 1).to_bytes(4, "little")
    return bytes(data)


def locked() -> bytes:
    data = bytearray(zipped({"word/document.xml": b"a"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


ENTRY = {"META-INF/container.xml": "<container/>"}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PASSWORD = OLE + bytes(500) + "EncryptedPackage".encode("utf-16-le")
WEB_PAGE = b"<!DOCTYPE html><html><body>Please log in.</body></html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
ANNEX = b"/annex/objects/SHA256E-s31390--f50d.pdf\n"
ENCRYPTION = "<manifest:manifest><manifest:encryption-data/></manifest:manifest>"
REFUSED: dict[str, tuple[bytes, str]] = {
    "header.pdf": (b"%PDF-1.7\n", "damaged"),
    "text.pdf": (b"no pdf at all", "damaged"),
    "half.pdf": (pdf(prose(SENTENCE))[:700], "damaged"),
    "zeros.pdf": (b"\0" * 2000, "damaged"),
    "encrypted.pdf": (encrypted(pdf(prose(SENTENCE)), "secret"), "is encrypted"),
    "scan.pdf": (drawn(lambda page: page.rect(10, 10, 100, 100)), "OCR"),
    "broken.docx": (b"PK\x03\x04 broken", "damaged"),
    "text.docx": (b"no zip", "damaged"),
    "no document.docx": (zipped({"a.txt": b"a"}), "damaged"),
    "half.docx": (word(fill)[:-900], "damaged"),
    "no types.docx": (zipped({"[Content_Types].xml": b"<"}), "damaged"),
    "bomb.docx": (bomb(), "unpacks to"),
    "old format.docx": (OLE + b"\0" * 1000, "is in a format of Office before 2007"),
    "encrypted.docx": (locked(), "is encrypted"),
    "broken.pptx": (b"PK\x03\x04", "is not a PowerPoint file"),
    "no slides.pptx": (zipped({"a.txt": "a"}), "is not a .pptx file"),
    "no types.xlsx": (zipped({"[Content_Types].xml": "<"}), "is not a .xlsx file"),
    "broken.odt": (zipped({"content.xml": "<"}), "is not a .odt file"),
    "no body.odt": (zipped({"content.xml": "<a/>"}), "is not a .odt file"),
    "text.rtf": (b"text", "is not a Rich Text file"),
    "no package.epub": (zipped(ENTRY), "is not a .epub file"),
    "text.eml": (b"no mail", "is not a mail"),
    "text.msg": (b"no mail", "is not a .msg file"),
    "list.ipynb": (b"[]", "is not a .ipynb file"),
    "deep.ipynb": (b"[" * 100_000, "is not a .ipynb file"),
    "text.zip": (b"no zip", "is not a zip file"),
    "empty.zip": (zipped({}), "has no files in it"),
    "encrypted.odt": (zipped({"content.xml": "\0\1", "META-INF/manifest.xml": ENCRYPTION}), "is encrypted"),
    **{f"password.{suffix}": (PASSWORD, "is protected with a password") for suffix in ("docx", "xlsx", "pptx", "xlsm")},
    **{f"page.{suffix}": (WEB_PAGE, "is a web page .* Download") for suffix in ("pdf", "docx", "xlsx", "epub")},
    **{f"lfs.{suffix}": (LFS, "`git lfs pull`") for suffix in ("pdf", "md", "docx", "csv")},
    **{f"annex.{suffix}": (ANNEX, "`git annex get`") for suffix in ("pdf", "md", "docx", "csv")},
}


@pytest.mark.parametrize("name", REFUSED)
def test_file_that_cannot_be_read_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    data, reason = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    assert len(list_files([tmp_path / name])[0]) == (name != "empty.zip"), "it is listed, so that its error is reported"
    with pytest.raises(DocumentError, match=f"{name}: .*{reason}"):
        load(tmp_path / name)
