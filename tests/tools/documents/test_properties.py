"""Author, date and tags of files of each format."""

from datetime import datetime
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from pypdf import PdfWriter

from sleuth.tools.documents.formats.binary_formats import read_docx
from sleuth.tools.documents.formats.book_formats import read_eml
from sleuth.tools.documents.formats.content import Properties, clean_author, clean_date, clean_tags
from sleuth.tools.documents.formats.office_formats import read_pptx, read_xlsx
from sleuth.tools.documents.formats.plain_formats import read_html, read_markdown
from sleuth.tools.documents.loading import load

WHEN = datetime(2025, 3, 14, 9, 26)


def cleaned(found: Properties) -> tuple[str, str, tuple[str, ...]]:
    return clean_author(found.author), clean_date(found.date), clean_tags(found.tags)


EXPECTED = ("Ada Brask", "2025-03-14", ("contract", "light"))


def office_file(document: object, properties: object) -> bytes:
    for name, value in {"author": "Ada Brask", "creator": "Ada Brask", "keywords": "Light; Contract"}.items():
        if hasattr(properties, name):
            setattr(properties, name, value)
    properties.modified = WHEN  # type: ignore[attr-defined]
    out = BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()


def test_word_file_has_properties() -> None:
    document = docx.Document()
    document.add_paragraph("A text.")
    assert cleaned(read_docx(office_file(document, document.core_properties)).properties) == EXPECTED


def test_presentation_has_properties() -> None:
    shown = pptx.Presentation()
    assert cleaned(read_pptx(office_file(shown, shown.core_properties)).properties) == EXPECTED


def test_workbook_has_its_author_and_tags() -> None:
    book = openpyxl.Workbook()
    author, date, tags = cleaned(read_xlsx(office_file(book, book.properties)).properties)
    assert (author, tags) == (EXPECTED[0], EXPECTED[2])
    assert date == datetime.now().date().isoformat() or date == EXPECTED[1]  # openpyxl sets it when saving


def test_mail_has_properties() -> None:
    mail = EmailMessage()
    mail["From"], mail["Date"], mail["Keywords"] = (
        "Ada Brask <ada@example.org>",
        "Fri, 14 Mar 2025 09:26:00 +0100",
        "light, contract",
    )
    mail.set_content("Hello.")
    author, *others = cleaned(read_eml(mail.as_bytes()).properties)
    assert (author, *others) == ("Ada Brask <ada@example.org>", *EXPECTED[1:])


def test_page_has_properties() -> None:
    page = (
        '<html><head><meta name="author" content="Ada Brask"><meta name="Keywords" content="light, Contract">'
        '<meta property="article:published_time" content="2025-03-14T09:26:00Z"></head><p>Text.</p></html>'
    )
    assert cleaned(read_html(page.encode()).properties) == EXPECTED


@pytest.mark.parametrize(
    "about",
    [
        "author: Ada Brask\ndate: 2025-03-14\ntags: [light, Contract]",
        "Author: Ada Brask\ndate: 2025-03-14 09:26:00\nkeywords: light, contract",
        "authors:\n  - Ada Brask\ndate: '2025-03-14'\ntags:\n  - Light\n  - contract",
    ],
)
def test_markdown_has_its_front_matter(about: str) -> None:
    assert cleaned(read_markdown(f"---\n{about}\n---\n# Title\n".encode()).properties) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "---\n: [\n---\ntext",
        "---\n- a\n- b\n---\n",
        "---\nauthor: {a: b}\ntags: [[a]]\n---\n",
        "---\na: &a [x]\nb: *a\n" + "c: *a\n" * 50 + "---\n",
        "--- \nno end",
    ],
)
def test_other_text_between_dashes_is_no_metadata(text: str) -> None:
    found = read_markdown(text.encode())
    assert cleaned(found.properties) == ("", "", ())
    assert found.sections[0].text == text


@pytest.mark.parametrize(
    ("given", "date"),
    [
        ("D:20250314092600+01'00'", "2025-03-14"),
        ("2025-03-14T09:26:00Z", "2025-03-14"),
        ("20250314", "2025-03-14"),
        (WHEN, "2025-03-14"),
        (WHEN.date(), "2025-03-14"),
        ("Fri, 14 Mar 2025 09:26:00 GMT", "2025-03-14"),
        ("D:20251399", ""),
        ("soon", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_date_is_read_in_the_forms_of_files(given: object, date: str) -> None:
    assert clean_date(given) == date


def test_date_of_a_file_without_one_is_that_of_its_change(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Text.")
    assert load(path).date == datetime.fromtimestamp(path.stat().st_mtime).date().isoformat()


def test_pdf_has_properties(tmp_path: Path) -> None:
    reportlab = pytest.importorskip("reportlab.pdfgen.canvas")
    path = tmp_path / "a.pdf"
    page = reportlab.Canvas(str(path))
    page.drawString(100, 700, "The light was lit.")
    page.save()
    writer = PdfWriter(clone_from=path)
    writer.add_metadata({"/Author": "Ada Brask", "/CreationDate": "D:20250314092600", "/Keywords": "light; contract"})
    writer.write(path)
    found = load(path)
    assert (found.author, found.date, found.tags) == EXPECTED
