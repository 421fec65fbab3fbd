"""Text out of files of Office before 2007, and of other formats that programs save under their suffixes."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sleuth.tools.documents.formats.book_formats import read_eml
from sleuth.tools.documents.formats.content import Content, Section, office_extra
from sleuth.tools.documents.formats.data_formats import read_xml
from sleuth.tools.documents.formats.excel_format import read_xlsx, sheet_sections
from sleuth.tools.documents.formats.html_format import read_html
from sleuth.tools.documents.formats.marks import HIDDEN
from sleuth.tools.documents.formats.number_formats import cell_text
from sleuth.tools.documents.formats.plain_formats import read_plain, read_table
from sleuth.tools.documents.formats.powerpoint_format import read_pptx
from sleuth.tools.documents.formats.tables import Numbered
from sleuth.tools.documents.formats.word_format import OLE, PROTECTED, read_docx, read_rtf
from sleuth.tools.errors import DocumentError

CONVERSION_SECONDS = 300
_HTML = re.compile(rb"\s*(?:<!doctype html|<html|<head|<meta|<style|<table|<div|<body)", re.IGNORECASE)
_MAIL = re.compile(rb"(?:[\w-]+:[^\n]*\n)*MIME-Version:", re.IGNORECASE)
_INSTALL = "Install it (Debian: apt install libreoffice-nogui)"


def read_doc(data: bytes) -> Content:
    """Return the text of a .doc file, which LibreOffice converts; web pages, Rich Text and mails are read directly."""
    if data.startswith(OLE):
        return read_docx(_converted(data, ".doc", ".docx"))
    if data.startswith(b"PK"):
        return read_docx(data)
    if data.startswith(b"{\\rtf"):
        return read_rtf(data)
    if _HTML.match(data.removeprefix(b"\xef\xbb\xbf")):
        return read_html(data)
    return read_eml(data) if _MAIL.match(data) else read_plain(data)


def read_ppt(data: bytes) -> Content:
    """Return the text of a .ppt file, which LibreOffice converts."""
    return read_pptx(data if data.startswith(b"PK") else _converted(data, ".ppt", ".pptx"))


def _converted(data: bytes, suffix: str, target: str) -> bytes:
    """Return a file that LibreOffice has converted.

    Raises:
        DocumentError: LibreOffice is not installed, or cannot convert the file.
    """
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        raise DocumentError(f"is in a format that only LibreOffice reads. {_INSTALL}, or save the file as {target}.")
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"a{suffix}").write_bytes(data)
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        to = ["--convert-to", target.removeprefix("."), "--outdir", str(folder / "out"), str(folder / f"a{suffix}")]
        try:
            subprocess.run(  # noqa: S603 - no argument comes from the input
                [program, profile, "--headless", *to], check=False, capture_output=True, timeout=CONVERSION_SECONDS
            )
            return (folder / "out" / f"a{target}").read_bytes()
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = "is protected with a password, or damaged: LibreOffice cannot convert it"
            raise DocumentError(f"{reason}. Save it as {target} without a password.") from error


def read_xls(data: bytes) -> Content:
    """Return the sheets of an .xls or .xlsb file; web pages, XML and text are read directly."""
    if data.startswith(OLE) or (data.startswith(b"PK") and b"xl/workbook.bin" in data):
        return _read_workbook(data)
    if data.startswith(b"PK"):
        return read_xlsx(data)
    if _HTML.match(data.removeprefix(b"\xef\xbb\xbf")):
        return read_html(data)
    return read_xml(data) if data.lstrip().startswith(b"<?xml") else read_table(data)


def _read_workbook(data: bytes) -> Content:
    with office_extra(".xls and .xlsb", ".xlsx"):
        from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(data))
    except PasswordError as error:
        raise DocumentError(PROTECTED) from error
    sections: list[Section] = []
    for sheet in book.sheets_metadata:
        if sheet.typ == SheetTypeEnum.WorkSheet:
            name = sheet.name if sheet.visible == SheetVisibleEnum.Visible else f"{sheet.name} {HIDDEN}"
            sections += sheet_sections(name, list(_rows(book.get_sheet_by_name(sheet.name))))
    return Content(None, sections)


def _rows(sheet: Any) -> Iterator[Numbered]:  # noqa: ANN401 - python-calamine comes with an extra
    """Yield the rows of a sheet; merged cells have their value in each row."""
    rows = sheet.to_python(skip_empty_area=False)
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
        for row in rows[top + 1 : bottom + 1]:
            row[left] = row[left] or rows[top][left]
    yield from ((number, [cell_text(cell) for cell in row]) for number, row in enumerate(rows, start=1))
