"""Readers of file formats by suffix; a reader is imported when the first file of its format is read.

A package adds readers by entry points, which all interfaces then use:

    [project.entry-points."sleuth.readers"]
    ".bib" = "my_package.bib:read_bib"
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from mimetypes import guess_type
from pathlib import PurePath
from typing import NamedTuple

from sleuth.tools.documents.formats.content import Content
from sleuth.tools.errors import DocumentError, MissingPart, needs_part

GROUP = "sleuth.readers"
"""The group of the entry points of further readers, by suffix: functions that return the content of a file's bytes."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
_CODE = """
bash c cc clj cpp cs css cxx dart ex exs erl fs go h hh hpp hs java jl js jsx kt less lisp lua m ml nim org php pl pm
ps1 py pyi r rb rs scala scss sh sql svelte swift tex ts tsx vb vue zig zsh
"""


class Format(NamedTuple):
    """The media type of files, and their reader; those that are `light` are read without a parser of any size."""

    media_type: str
    reader: str
    is_light: bool = False


FORMATS = {
    suffix: Format(*about)
    for suffixes, *about in (
        (".txt", "text/plain", "plain_formats:read_plain", True),
        (".md .markdown", "text/markdown", "plain_formats:read_markdown", True),
        (".rst", "text/x-rst", "plain_formats:read_rst", True),
        (".adoc .asciidoc", "text/asciidoc", "plain_formats:read_asciidoc", True),
        (".html .htm .xhtml", "text/html", "html_format:read_html"),
        (".pdf", "application/pdf", "pdf_format:read_pdf"),
        (".docx .docm .dotx .dotm", f"{_OFFICE}.wordprocessingml.document", "word_format:read_docx"),
        (
            ".pptx .pptm .ppsx .ppsm .potx .potm",
            f"{_OFFICE}.presentationml.presentation",
            "powerpoint_format:read_pptx",
        ),
        (".xlsx .xlsm .xltx .xltm", f"{_OFFICE}.spreadsheetml.sheet", "excel_format:read_xlsx"),
        (".odt .ott", f"{_OPEN}.text", "opendocument_format:read_odf"),
        (".odp .otp", f"{_OPEN}.presentation", "opendocument_format:read_odf"),
        (".ods .ots", f"{_OPEN}.spreadsheet", "opendocument_format:read_odf"),
        (".rtf", "application/rtf", "word_format:read_rtf"),
        (".epub", "application/epub+zip", "book_formats:read_epub"),
        (".eml", "message/rfc822", "book_formats:read_eml"),
        (".mbox", "application/mbox", "book_formats:read_mbox"),
        (".msg", "application/vnd.ms-outlook", "book_formats:read_msg"),
        (".ipynb", "application/x-ipynb+json", "book_formats:read_notebook"),
        (".csv", "text/csv", "plain_formats:read_table", True),
        (".tsv", "text/tab-separated-values", "plain_formats:read_table", True),
        (".doc", "application/msword", "old_office_formats:read_doc"),
        (".ppt", "application/vnd.ms-powerpoint", "old_office_formats:read_ppt"),
        (".xls .xlsb", "application/vnd.ms-excel", "old_office_formats:read_xls"),
        (".json", "application/json", "data_formats:read_json", True),
        (".jsonl .ndjson", "application/jsonl", "data_formats:read_json_lines", True),
        (".xml .rss .atom", "application/xml", "data_formats:read_xml"),
        (".srt", "application/x-subrip", "data_formats:read_subtitles", True),
        (".vtt", "text/vtt", "data_formats:read_subtitles", True),
        (".ics", "text/calendar", "calendar_formats:read_calendar", True),
        (".vcf", "text/vcard", "calendar_formats:read_contacts", True),
        (" ".join(f".{name}" for name in _CODE.split()), "text/x-source", "plain_formats:read_plain", True),
    )
    for suffix in suffixes.split()
}
"""The formats by suffix; their readers are below `formats`."""
FORMATS[""] = FORMATS[".txt"]
MAILS = {FORMATS[suffix].reader for suffix in (".eml", ".mbox", ".msg")}
"""Readers that also take a function which reads an attachment."""
BINARY = {FORMATS[suffix].reader for suffix in (".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".epub", ".msg")}
"""Readers of formats that no web page is in."""


@cache
def reader_of(suffix: str) -> Callable[..., Content]:
    """Import the reader of a suffix; raise DocumentError if its part is not installed."""
    place = formats()[suffix].reader
    value = f"sleuth.tools.documents.formats.{place}" if suffix in FORMATS else place
    try:
        with needs_part("formats", f"A {suffix} file"):
            reader: Callable[..., Content] = EntryPoint(suffix, value, GROUP).load()
    except MissingPart as error:
        raise DocumentError(f"is not read. {error}") from error
    return reader


@cache
def formats() -> dict[str, Format]:
    """Return `FORMATS`, and those that other packages add by entry points; none of them replaces a format."""
    added = {entry.name.lower(): entry.value for entry in entry_points(group=GROUP)}
    return {suffix: Format(media_type_of(PurePath(f"x{suffix}")), reader) for suffix, reader in added.items()} | FORMATS


def media_type_of(path: PurePath) -> str:
    """Return the media type of a file by its name."""
    suffix = path.suffix.lower()
    return FORMATS[suffix].media_type if suffix in FORMATS else guess_type(path.name)[0] or "application/octet-stream"
