"""Author, date and tags of files of each format."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from made_files import drawn, saved
from pypdf import PdfWriter

from sleuth.tools.documents.formats.book_formats import read_eml
from sleuth.tools.documents.formats.content import Content, clean_author, clean_date, clean_tags
from sleuth.tools.documents.formats.excel_format import read_xlsx
from sleuth.tools.documents.formats.html_format import read_html
from sleuth.tools.documents.formats.pdf_format import read_pdf
from sleuth.tools.documents.formats.plain_formats import read_markdown
from sleuth.tools.documents.formats.powerpoint_format import read_pptx
from sleuth.tools.documents.formats.word_format import read_docx
from sleuth.tools.documents.loading import load

WHEN = datetime(2025, 3, 14, 9, 26)


def cleaned(found: Content) -> tuple[str, str, tuple[str, ...]]:
    return clean_author(found.author), clean_date(found.date), clean_tags(found.tags)


EXPECTED = ("Ada Brask", "2025-03-14", ("contract", "light"))


def office_file(document: Any, properties: Any) -> bytes:
    for name, value in {"author": "Ada Brask", "creator": "Ada Brask", "keywords": "Light; Contract"}.items():
        if hasattr(properties, name):
            setattr(properties, name, value)
    properties.modified = WHEN
    return saved(document)


def word() -> bytes:
    document = docx.Document()
    document.add_paragraph("A text.")
    return office_file(document, document.core_properties)


def slides() -> bytes:
    shown = pptx.Presentation()
    return office_file(shown, shown.core_properties)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    return office_file(book, book.properties)


def pdf() -> bytes:
    writer = PdfWriter(clone_from=BytesIO(drawn(lambda page: page.drawString(100, 700, "The light was lit."))))
    writer.add_metadata({"/Author": "Ada Brask", "/CreationDate": "D:20250314092600", "/Keywords": "light; contract"})
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def mail() -> bytes:
    head = b"From: Ada Brask <ada@example.org>\nDate: Fri, 14 Mar 2025 09:26:00 +0100\nKeywords: light, contract"
    return head + b"\n\nHello."


def page() -> bytes:
    return (
        b'<html><head><meta name="author" content="Ada Brask"><meta name="Keywords" content="light, Contract">'
        b'<meta property="article:published_time" content="2025-03-14T09:26:00Z"></head><p>Text.</p></html>'
    )


@pytest.mark.parametrize(
    ("read", "make"),
    [
        (read_docx, word),
        (read_pptx, slides),
        (read_xlsx, workbook),
        (read_pdf, pdf),
        (read_eml, mail),
        (read_html, page),
    ],
)
def test_file_has_properties(read: Callable[[bytes], Content], make: Callable[[], bytes]) -> None:
    author, date, tags = cleaned(read(make()))
    assert (author.removesuffix(" <ada@example.org>"), tags) == (EXPECTED[0], EXPECTED[2])
    assert date == EXPECTED[1] or (make is workbook and date == datetime.now().date().isoformat())  # set when saved


@pytest.mark.parametrize(
    "about",
    [
        "author: Ada Brask\ndate: 2025-03-14\ntags: [light, Contract]",
        "Author: Ada Brask\ndate: 2025-03-14 09:26:00\nkeywords: light, contract",
        "authors:\n  - Ada Brask\ndate: '2025-03-14'\ntags:\n  - Light\n  - contract",
    ],
)
def test_markdown_has_its_front_matter(about: str) -> None:
    found = read_markdown(f"---\n{about}\n---\n# Title\n".encode())
    assert cleaned(found) == EXPECTED
    assert found.sections[0].text == "# Title\n", "front matter is no text"
    assert read_markdown(f"---\n{about}\n---\n".encode()).sections[0].text, "a file of nothing else is kept"


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
    assert cleaned(found) == ("", "", ())
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
        ("2025-03", "2025-03"),
        (2025, "2025"),
        ("2025-13", ""),
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
