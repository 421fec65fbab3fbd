"""Presentations, spreadsheets, books, mails, notebooks and archives: their text, and the place of each passage."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pptx
import pytest
from made_files import zipped
from pptx.util import Inches

from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.formats.tables import TABLE_CHARS, table_pieces
from sleuth.tools.documents.loading import FileReader, load
from sleuth.tools.errors import DocumentError
from sleuth.tools.ingestion.batch_reader import make_entry
from sleuth.tools.places import Place, location

Make = Callable[[Path], object]
ODF = "urn:oasis:names:tc:opendocument:xmlns:"
FERRY = "The ferry to Arden leaves at nine."


def slides(path: Path) -> None:
    made = pptx.Presentation()
    for number, text in enumerate(["The timetable", "The fares"], start=1):
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = text
        box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(4), Inches(1))
        box.text_frame.text = FERRY if number == 1 else "Children travel free."
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(3), Inches(4), Inches(1)).table
    for row, cells in enumerate([["Class", "Fare"], ["First", "12"]]):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    slide.notes_slide.notes_text_frame.text = "Mention the season ticket."
    made.save(str(path))


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet
    sheet.title = "Fares"
    sheet.append(["Harbour", "Fare", "Since"])
    for number in range(2, 101):
        sheet.append([f"Harbour {number}", number / 2, None])
    book.create_sheet("Notes").append([FERRY])
    book.save(path)


def odf(body: str) -> Make:
    names = " ".join(f'xmlns:{name}="{ODF}{space}:1.0"' for name, space in SPACES.items())
    content = f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"
    dc = "http://purl.org/dc/elements/1.1/"
    meta = f'<office:document-meta {names} xmlns:dc="{dc}"><dc:title>Ferries</dc:title></office:document-meta>'
    return lambda path: path.write_bytes(zipped({"content.xml": content, "meta.xml": meta}))


SPACES = {"office": "office", "text": "text", "table": "table", "draw": "drawing"}
TEXT = f"""<office:text><text:h text:outline-level="2">Times</text:h><text:p>{FERRY}</text:p>
<text:list><text:list-item><text:p>daily</text:p></text:list-item></text:list></office:text>"""
SHOWN = f"""<office:presentation><draw:page><text:p>First.</text:p></draw:page>
<draw:page><text:p>{FERRY}</text:p></draw:page></office:presentation>"""
SHEETS = f"""<office:spreadsheet><table:table table:name="Times"><table:table-row><table:table-cell>
<text:p>Line</text:p></table:table-cell><table:table-cell><text:p>Text</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="3"><table:table-cell table:number-columns-repeated="2"/></table:table-row>
<table:table-row><table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell><text:p>{FERRY}</text:p>
</table:table-cell></table:table-row></table:table></office:spreadsheet>"""


def book(path: Path) -> None:
    package = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
    <dc:title>A book of ferries</dc:title></metadata><manifest><item id="a" href="one.xhtml"/>
    <item id="b" href="two%20b.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>"""
    container = '<container><rootfiles><rootfile full-path="inner/book.opf"/></rootfiles></container>'
    entries = {
        "META-INF/container.xml": container,
        "inner/book.opf": package,
        "inner/one.xhtml": f"<html><body><h1>Arden</h1><p>{FERRY}</p></body></html>",
        "inner/two b.xhtml": "<html><body><p>Before all.</p></body></html>",
    }
    path.write_bytes(zipped(entries))


MAIL = f"""From: Rosa Quill <rosa@example.org>
To: Edric Gannow <edric@example.org>
Date: Mon, 03 Jun 2024 10:00:00 +0000
Subject: The ferry
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/html

<p>{FERRY}</p>
--x
Content-Disposition: attachment; filename="fares.pdf"
Content-Type: application/pdf

x
--x--
"""


NOTEBOOK = {
    "metadata": {"kernelspec": {"language": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Ferries\n", "All of them."]},
        {"cell_type": "code", "source": f"print('{FERRY}')", "outputs": [{"text": "left out"}]},
    ],
}


def outlook_mail(path: Path) -> None:
    shutil.copyfile(Path(__file__).with_name("ferry.msg"), path)


def text(content: str) -> Make:
    return lambda path: path.write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "make", "title", "place"),
    [
        ("a.pptx", slides, "The timetable", "slide 1–2"),
        ("a.xlsx", workbook, "A", "Notes, row 1"),
        ("a.odt", odf(TEXT), "Ferries", ""),
        ("a.odp", odf(SHOWN), "Ferries", "slide 1–2"),
        ("a.ods", odf(SHEETS), "Ferries", "Times, row 5"),
        ("a.rtf", text(r"{\rtf1\ansi " + FERRY + r"\par}"), "A", ""),
        ("a.epub", book, "A book of ferries", "chapter “Arden”"),
        ("a.eml", text(MAIL), "The ferry", "mail from Rosa Quill <rosa@example.org>, Mon, 03 Jun 2024 10:00:00 +0000"),
        ("a.msg", outlook_mail, "The ferry", 'mail from "Rosa Quill" <rosa@example.org>, 2024-06-03 10:00+00:00'),
        ("a.ipynb", text(json.dumps(NOTEBOOK)), "Ferries", "cell 1–2"),
        ("a.rst", text(f"=======\nFerries\n=======\n\n{FERRY}\n"), "Ferries", ""),
        ("a.adoc", text(f"= Ferries\n\n{FERRY}\n"), "Ferries", ""),
        ("ferries.py", text(f"# {FERRY}\n"), "Ferries", ""),
        ("README", text(FERRY), "README", ""),
    ],
)
def test_format_is_read_with_its_places(tmp_path: Path, name: str, make: Make, title: str, place: str) -> None:
    make(tmp_path / name)
    reader = FileReader()
    loaded = reader.read(tmp_path / name)
    reader.close()
    assert loaded.title == title
    entry = make_entry(document_id="a", source="a", loaded=loaded)
    assert all(loaded.text[each.start : each.end] == each.text for each in entry.passages)
    (found,) = [each for each in entry.passages if FERRY in each.text]
    assert found.location == place
    assert "left out" not in loaded.text


def test_tables_repeat_their_header_in_each_passage(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx")
    entry = make_entry(document_id="a", source="a", loaded=load(tmp_path / "a.xlsx"))
    with_rows = [each for each in entry.passages if "Harbour 5" in each.text]
    assert len(with_rows) > 1
    assert all("| Harbour | Fare | Since |" in each.text for each in with_rows)
    (fifty,) = [each for each in entry.passages if "| Harbour 50 | 25 |" in each.text]
    first, last = (int(number) for number in fifty.location.removeprefix("Fares, rows ").split("–"))
    assert first <= 50 <= last


HEADERS = {"To: Edric Gannow <edric@example.org>", "Subject: The ferry", "Attachment: fares.pdf"}


@pytest.mark.parametrize(
    ("name", "make", "lines"),
    [
        ("a.pptx", slides, {"## The fares", "| First | 12 |", "Notes: Mention the season ticket."}),
        ("a.eml", text(MAIL), HEADERS),
        ("a.msg", outlook_mail, HEADERS),
    ],
)
def test_file_has_its_further_lines(tmp_path: Path, name: str, make: Make, lines: set[str]) -> None:
    make(tmp_path / name)
    assert lines <= {*load(tmp_path / name).text.splitlines()}


def test_wide_rows_are_lines_with_names() -> None:
    rows = [(1, ["Name", "Text"]), (2, ["A", "x" * TABLE_CHARS]), (4, ["B", "y"])]
    assert [*table_pieces(rows)] == [(f"Name: A; Text: {'x' * TABLE_CHARS}", 2, 2), ("Name: B; Text: y", 4, 4)]
    assert [*table_pieces([(1, [" "])])] == []


def test_location_names_all_places() -> None:
    marks = ((5, Place("p.", 1)), (10, Place("p.", 2)), (20, Place("p.", 3)), (30, Place("Fares, rows", 2, 9)))
    expected = {(0, 4): "", (0, 6): "p. 1", (5, 9): "p. 1", (9, 25): "p. 1–3", (31, 40): "Fares, rows 2–9"}
    expected[22, 33] = "p. 3 – Fares, rows 2–9"
    assert {span: location(marks, *span) for span in expected} == expected


def test_archive_is_a_folder(tmp_path: Path) -> None:
    inner = {"notes/ferry.md": f"# Ferries\n\n{FERRY}", "b.xyz": "x", ".hidden.md": "x", "__MACOSX/a.md": "x"}
    inner |= {"z/b..c.md": FERRY, "./z/d.md": FERRY}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "old.zip").write_bytes(zipped({**inner, "deeper.zip": zipped({"a.md": "a"})}))
    items, passed = list_files([tmp_path / "in"])
    dotted, item, other = items
    assert (dotted.document_id, other.document_id) == ("old.zip/z/d.md", "old.zip/z/b..c.md")
    assert (item.document_id, item.source) == ("old.zip/notes/ferry.md", f"{tmp_path}/in/old.zip/notes/ferry.md")
    assert [line.partition(": ")[0].removeprefix(f"{tmp_path}/in/") for line in passed] == [
        "old.zip/b.xyz",
        "old.zip/deeper.zip",
    ]
    reader = FileReader()
    loaded = reader.read(item.path, item.member)
    reader.close()
    assert (loaded.title, loaded.media_type) == ("Ferries", "text/markdown")
    assert FERRY in loaded.text


@pytest.mark.parametrize(
    "name", ["/srv/ada/lease.md", "//a.md", "../a.md", "b/../../a.md", "..", "c\\a.md", "C:/a.md", ".b/../a.md"]
)
def test_member_outside_its_archive_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "old.zip").write_bytes(zipped({name: FERRY, "notes/ferry.md": FERRY}))
    items, _ = list_files([tmp_path / "old.zip"])
    assert {item.source.startswith(f"{tmp_path}/old.zip/") for item in items} == {True}
    assert {item.document_id.startswith("old.zip/") for item in items} == {True}
    (bad,) = [item for item in items if item.member == name]
    with pytest.raises(DocumentError, match=r"old\.zip/.*: has a name that is absolute"):
        load(bad.path, bad.member)
    assert load(items[0].path, "notes/ferry.md").text == FERRY
