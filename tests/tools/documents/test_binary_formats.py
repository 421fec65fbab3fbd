import io
from collections.abc import Callable

import docx
import pytest
from made_files import drawn, saved, text_of, zipped
from pypdf import PdfReader, PdfWriter
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

from sleuth.tools.documents.formats import pdf_format, word_format
from sleuth.tools.documents.formats.archives import MAX_UNPACKED_BYTES
from sleuth.tools.documents.formats.content import Content
from sleuth.tools.errors import DocumentError

STYLES = getSampleStyleSheet()
SENTENCE = "The first ferry of the islands was built by Rosa Quill in the spring of 1843. "


def read_pdf(data: bytes) -> tuple[str | None, str]:
    return whole(pdf_format.read_pdf(data))


def read_docx(data: bytes) -> tuple[str | None, str]:
    return whole(word_format.read_docx(data))


def whole(content: Content) -> tuple[str | None, str]:
    return content.title, text_of(content)


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
    _, text = read_pdf(pdf(heading("Ferries"), prose(SENTENCE * 5), prose(SENTENCE * 3)))
    assert "the spring of 1843. The first" in text
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    assert paragraphs == ["Ferries", (SENTENCE * 5).strip(), (SENTENCE * 3).strip()]


def test_pdf_table_rows_become_lines() -> None:
    cells = [
        ["Ferry", "Built", "Captain"],
        ["Heron", "1843", prose("Rosa Quill, <br/>then her sister")],
        ["Wagtail", "1851", "Ash"],
    ]
    _, text = read_pdf(pdf(prose(SENTENCE), Table(cells, colWidths=100), prose(SENTENCE)))
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
    assert read_pdf(drawn(draw))[1].split("\n\n") == pages


def test_pdf_columns_are_not_taken_for_table_cells() -> None:
    def draw(page: Canvas) -> None:
        for x, word in ((50, "left"), (320, "right")):
            for line in range(40):
                page.drawString(x, 800 - 14 * line, f"{word} line {line}.")

    _, text = read_pdf(drawn(draw))
    assert " | " not in text
    assert text.index("left line 39") < text.index("right line 0")


@pytest.mark.parametrize(
    ("metadata", "title"),
    [("The ferries of Arden", "The ferries of Arden"), ("untitled", "Ferries"), ("Microsoft Word - f.doc", "Ferries")],
)
def test_pdf_title_is_its_own_or_its_first_line(metadata: str, title: str) -> None:
    assert read_pdf(pdf(heading("Ferries"), prose(SENTENCE), title=metadata))[0] == title


def test_pdf_that_opens_without_a_password_is_read() -> None:
    assert "Rosa Quill" in read_pdf(encrypted(pdf(prose(SENTENCE)), ""))[1]


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
    title, text = read_docx(word(fill))
    assert title == "Ferries"
    table = "| Name | Built |\n| --- | --- |\n| Heron | 1843 |"
    assert text.split("\n\n") == ["# Ferries", "Two ran.", "# Names", table, "- sank", "Both “sank”."]

    def named(document: docx.document.Document) -> None:
        fill(document)
        document.core_properties.title = "The ferries of Arden"

    assert read_docx(word(named))[0] == "The ferries of Arden"
    assert read_docx(word(lambda document: None)) == (None, "")


def bomb() -> bytes:
    data = bytearray(zipped({"word/document.xml": b"a"}))
    size = data.index(b"PK\x01\x02") + 24
    data[size : size + 4] = (MAX_UNPACKED_BYTES + 1).to_bytes(4, "little")
    return bytes(data)


def locked() -> bytes:
    data = bytearray(zipped({"word/document.xml": b"a"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


REFUSED = {
    "pdf header": (read_pdf, b"%PDF-1.7\n", "damaged"),
    "pdf text": (read_pdf, b"no pdf at all", "damaged"),
    "pdf half": (read_pdf, pdf(prose(SENTENCE))[:700], "damaged"),
    "pdf zeros": (read_pdf, b"\0" * 2000, "damaged"),
    "pdf encrypted": (read_pdf, encrypted(pdf(prose(SENTENCE)), "secret"), "is encrypted"),
    "pdf scan": (read_pdf, drawn(lambda page: page.rect(10, 10, 100, 100)), "OCR"),
    "docx broken": (read_docx, b"PK\x03\x04 broken", "damaged"),
    "docx text": (read_docx, b"no zip", "damaged"),
    "docx no document": (read_docx, zipped({"a.txt": b"a"}), "damaged"),
    "docx half": (read_docx, word(fill)[:-900], "damaged"),
    "docx no types": (read_docx, zipped({"[Content_Types].xml": b"<"}), "damaged"),
    "docx bomb": (read_docx, bomb(), "unpacks to"),
    "docx old format": (read_docx, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 1000, "is encrypted"),
    "docx encrypted": (read_docx, locked(), "is encrypted"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_file_that_cannot_be_read_is_refused_with_a_reason(name: str) -> None:
    read, data, reason = REFUSED[name]
    with pytest.raises(DocumentError, match=reason):
        read(data)
