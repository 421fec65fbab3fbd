"""Readers of file formats by suffix; a reader is imported when the first file of its format is read.

A package adds readers by entry points, which all interfaces then use:

    [project.entry-points."sleuth.readers"]
    ".bib" = "my_package.bib:read_bib"
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from mimetypes import guess_type

from sleuth.tools.documents.formats.content import Content
from sleuth.tools.errors import DocumentError, MissingPart, needs_part

GROUP = "sleuth.readers"
"""The group of the entry points of further readers, by suffix: functions that return the content of a file's bytes."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
FORMATS: dict[str, tuple[str, str]] = {
    "": ("text/plain", "plain_formats:read_plain"),
    ".txt": ("text/plain", "plain_formats:read_plain"),
    ".md": ("text/markdown", "plain_formats:read_markdown"),
    ".markdown": ("text/markdown", "plain_formats:read_markdown"),
    ".rst": ("text/x-rst", "plain_formats:read_rst"),
    ".adoc": ("text/asciidoc", "plain_formats:read_asciidoc"),
    ".asciidoc": ("text/asciidoc", "plain_formats:read_asciidoc"),
    ".html": ("text/html", "html_format:read_html"),
    ".htm": ("text/html", "html_format:read_html"),
    ".xhtml": ("text/html", "html_format:read_html"),
    ".pdf": ("application/pdf", "pdf_format:read_pdf"),
    ".docx": (f"{_OFFICE}.wordprocessingml.document", "word_format:read_docx"),
    ".pptx": (f"{_OFFICE}.presentationml.presentation", "powerpoint_format:read_pptx"),
    ".xlsx": (f"{_OFFICE}.spreadsheetml.sheet", "excel_format:read_xlsx"),
    ".odt": (f"{_OPEN}.text", "opendocument_format:read_odf"),
    ".odp": (f"{_OPEN}.presentation", "opendocument_format:read_odf"),
    ".ods": (f"{_OPEN}.spreadsheet", "opendocument_format:read_odf"),
    ".rtf": ("application/rtf", "word_format:read_rtf"),
    ".epub": ("application/epub+zip", "book_formats:read_epub"),
    ".eml": ("message/rfc822", "book_formats:read_eml"),
    ".mbox": ("application/mbox", "book_formats:read_mbox"),
    ".msg": ("application/vnd.ms-outlook", "book_formats:read_msg"),
    ".ipynb": ("application/x-ipynb+json", "book_formats:read_notebook"),
    ".csv": ("text/csv", "plain_formats:read_table"),
    ".tsv": ("text/tab-separated-values", "plain_formats:read_table"),
    ".doc": ("application/msword", "old_office_formats:read_doc"),
    ".ppt": ("application/vnd.ms-powerpoint", "old_office_formats:read_ppt"),
    ".xls": ("application/vnd.ms-excel", "old_office_formats:read_xls"),
    ".xlsb": ("application/vnd.ms-excel", "old_office_formats:read_xls"),
    ".json": ("application/json", "data_formats:read_json"),
    ".jsonl": ("application/jsonl", "data_formats:read_json_lines"),
    ".ndjson": ("application/jsonl", "data_formats:read_json_lines"),
    ".xml": ("application/xml", "data_formats:read_xml"),
    ".rss": ("application/xml", "data_formats:read_xml"),
    ".atom": ("application/xml", "data_formats:read_xml"),
    ".srt": ("application/x-subrip", "data_formats:read_subtitles"),
    ".vtt": ("text/vtt", "data_formats:read_subtitles"),
    ".ics": ("text/calendar", "calendar_formats:read_calendar"),
    ".vcf": ("text/vcard", "calendar_formats:read_contacts"),
}
_VARIANTS = {
    ".docx": ".docm .dotx .dotm",
    ".pptx": ".pptm .ppsx .ppsm .potx .potm",
    ".xlsx": ".xlsm .xltx .xltm",
    ".odt": ".ott",
    ".odp": ".otp",
    ".ods": ".ots",
}
FORMATS |= {variant: FORMATS[suffix] for suffix, variants in _VARIANTS.items() for variant in variants.split()}
"""The media type of files with a suffix or without one, and their reader below `formats`, imported at its first use."""
_CODE = """
bash c cc clj cpp cs css cxx dart ex exs erl fs go h hh hpp hs java jl js jsx kt less lisp lua m ml nim org php pl pm
ps1 py pyi r rb rs scala scss sh sql svelte swift tex ts tsx vb vue zig zsh
"""
SOURCE_CODE = frozenset(f".{name}" for name in _CODE.split())
"""Suffixes of files that are read as plain text."""
FORMATS |= dict.fromkeys(sorted(SOURCE_CODE), ("text/x-source", "plain_formats:read_plain"))
PLAIN = SOURCE_CODE | {"", ".txt", ".md", ".markdown", ".rst", ".adoc", ".asciidoc", ".csv", ".tsv"}
PLAIN |= {".json", ".jsonl", ".ndjson", ".srt", ".vtt", ".ics", ".vcf"}
"""Suffixes of files that are read without a parser of any size."""


MAILS = {FORMATS[suffix][1] for suffix in (".eml", ".mbox", ".msg")}
"""Readers that also take a function which reads an attachment."""
BINARY = {FORMATS[suffix][1] for suffix in (".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".epub", ".msg")}
"""Readers of formats that no web page is in."""


@cache
def reader_of(suffix: str, place: str) -> Callable[..., Content]:
    """Import a reader; raise DocumentError if its part is not installed."""
    value = place if suffix not in FORMATS else f"sleuth.tools.documents.formats.{place}"
    try:
        with needs_part("formats", f"A {suffix} file"):
            reader: Callable[..., Content] = EntryPoint(suffix, value, GROUP).load()
    except MissingPart as error:
        raise DocumentError(f"is not read. {error}") from error
    return reader


@cache
def formats() -> dict[str, tuple[str, str]]:
    """Return `FORMATS`, and those that other packages add by entry points; none of them replaces a format."""
    added = {entry.name.lower(): entry.value for entry in entry_points(group=GROUP)}
    return {
        suffix: (guess_type(f"x{suffix}")[0] or "application/octet-stream", place) for suffix, place in added.items()
    } | FORMATS
