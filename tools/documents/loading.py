"""Loading of files of many formats as titled text; an unreadable file is an error of that file only.

All functions and methods block: call them in a thread.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from sleuth.tools.documents.chunking import is_markdown, split
from sleuth.tools.documents.formats.archives import ZIP, members_of, read_member
from sleuth.tools.documents.formats.content import (
    Content,
    Section,
    clean_author,
    clean_date,
    clean_meta,
    clean_tags,
    damage_of,
    join_sections,
    parts,
    row_marks,
)
from sleuth.tools.documents.formats.tables import repeat_headers
from sleuth.tools.documents.readers import BINARY, MAILS, formats, reader_of
from sleuth.tools.documents.resource_limits import (
    BOUNDS,
    MAX_FILE_BYTES,
    Bounds,
    is_folder,
    ordinary_size,
    printable,
    read_bytes,
    within,
)
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError, needs_part
from sleuth.tools.places import Marks, location, places_within
from sleuth.tools.text.encoded_data import LEFT_OUT, without_encoded_data
from sleuth.tools.text.encodings import decode, encoding_doubt
from sleuth.tools.text.normalization import normalize, title_from

SIDECAR = ".meta.json"
"""Added to the name of a file, the name of a file of its properties."""
MAX_SOURCE_BYTES = 2_000
"""Bytes of the path of a document, with its name in an archive: Postgres indexes no more than 2,700 of a row."""
LIGHT_BYTES = 256 << 10
"""Plain text up to this size is read in this process: its time and memory grow with its size alone."""

Loaders = Mapping[str, str]
"""The loader class of langchain-community for files with a suffix: `{".ipynb": "NotebookLoader"}`."""
NO_LOADERS: Loaders = MappingProxyType({})

_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_POINTER = re.compile(rb"(version https://git-lfs\.github\.com/spec/)|/annex/objects/")


class PassageSpan(NamedTuple):
    """The characters of a text that are a passage, and their place in the file, or the beginnings of several."""

    start: int
    end: int
    location: str
    places: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedDocument:
    """The text of one file, or of a line of a corpus. HTML and Word files become Markdown; `media_type` is of the file.

    The text from a loader class is plain text, whatever the file's type. `author`, `date` (ISO 8601), `tags` and `meta`
    are the file's own properties, or those in its sidecar; a file without a date has that of its last modification.
    `note`: a remark about the reading, such as the pages that were read by OCR. `spans`: its passages. `id`: that of a
    line of a corpus.
    """

    title: str
    text: str
    media_type: str
    author: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    spans: tuple[PassageSpan, ...] = ()
    id: str = ""


_DOCUMENT = TypeAdapter(LoadedDocument)


class FileReader:
    """Reader of files in a worker process: if a file crashes the parser or exceeds a limit, only its reading fails."""

    def __init__(self, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> None:
        self._loaders = loaders
        self._bounds = bounds
        self._worker = Worker(f"{__name__}.load_from_json", bounds)

    def close(self) -> None:
        """End the worker process for good, also while it works."""
        self._worker.close()

    def read(self, path: Path, member: str = "") -> LoadedDocument:
        """Read one file, or a file in a zip archive.

        Raises:
            DocumentError: the file has no text, cannot be parsed or exceeds the bounds.
            StoreError: the file needs the worker process, and the reader is closed.
        """
        if not member and self._is_light(path):
            return load(path, loaders=self._loaders, bounds=self._bounds)
        request = {"path": str(path), "member": member, "loaders": dict(self._loaders)}
        try:
            reply = self._worker.call(request, seconds=self._bounds.patience)
        except WorkerError as error:
            raise DocumentError(f"{printable(path, member)[:MAX_SOURCE_BYTES]}: {error}. {error.remedy}") from error
        if "error" in reply:
            raise DocumentError(reply["error"])
        return _DOCUMENT.validate_python(reply)

    def _is_light(self, path: Path) -> bool:
        """Return whether the file needs no limits, which is also so if it cannot be opened."""
        try:
            size = ordinary_size(path)
        except (DocumentError, OSError):
            return True
        suffix = path.suffix.lower()
        is_light = suffix in formats() and formats()[suffix].is_light and suffix not in self._loaders
        return size == 0 or (size <= LIGHT_BYTES and is_light)


def load(path: Path, member: str = "", *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> LoadedDocument:
    """Read one file, or one in a zip archive; a loader class for its suffix takes precedence over the built-in reader.

    Reads in this process and enforces only the limit on characters. `FileReader` enforces all bounds.

    Raises:
        DocumentError: the file has no readable text; the message contains the reason and the remedy.
        UnknownName: the loader class does not exist.
    """
    try:
        with damage_of(f"a {within(path, member).suffix or 'text'} file"):
            about = {} if member else _sidecar(path)
            media_type, content = _content(path, member, loaders, bounds.ocr_languages)
            convert = repeat_headers if is_markdown(media_type) else str
            sections = [
                replace(section, text=without_encoded_data(normalize(section.text))) for section in content.sections
            ]
            if all(set(section.text.split()) <= {LEFT_OUT} for section in sections):
                raise DocumentError("has encoded data or a minified script, and no text. Leave it out.")
            text, marks = join_sections(replace(section, text=convert(section.text)) for section in sections)
            if len(text) > bounds.characters:
                size = f"has {len(text):,} characters of text, and at most {bounds.characters:,} are read"
                raise DocumentError(f"{size}. Split it, or raise SLEUTH_FILE_CHARACTERS.")
            title = title_from(normalize(str(about.get("title") or content.title or "")))
            return LoadedDocument(
                title=title or _title_from_name(within(path, member)),
                text=text,
                media_type=media_type,
                author=clean_author(about.get("author") or content.author),
                date=clean_date(about.get("date")) or clean_date(content.date) or _modified(path),
                tags=clean_tags(about.get("tags") or content.tags),
                meta=clean_meta(content.meta) | clean_meta(about),
                note=content.note,
                spans=tuple(find_spans(text, media_type, marks)),
            )
    except DocumentError as error:
        raise DocumentError(f"{printable(path, member)[:MAX_SOURCE_BYTES]}: {error}") from error.__cause__


def is_sidecar(path: Path) -> bool:
    """Return whether a file has the properties of another one, as `lease.pdf.meta.json` of `lease.pdf`."""
    return path.name.endswith(SIDECAR) and path.with_name(path.name.removesuffix(SIDECAR)).is_file()


def _sidecar(path: Path) -> dict[str, Any]:
    """Return the properties of a file that are next to it; raise DocumentError if they cannot be read."""
    sidecar = path.with_name(f"{path.name}{SIDECAR}")
    try:
        if not sidecar.is_file():
            return {}
        about = json.loads(decode(read_bytes(sidecar)))
    except OSError:  # the name is too long for a file
        return {}
    except (ValueError, RecursionError, DocumentError):
        about = None
    if not isinstance(about, dict):
        raise DocumentError(
            f"has properties in {printable(PurePath(sidecar.name))}, which is no JSON object. Repair it."
        )
    return about


def find_spans(text: str, media_type: str, marks: Marks = ()) -> Iterator[PassageSpan]:
    """Yield the passages of a text; `marks`: where its pages, sheets and so on begin."""
    lines = row_marks(text, marks)
    for begin, end in parts(marks, len(text)):
        for start, stop in split(text[begin:end], media_type):
            span = begin + start, begin + stop
            yield PassageSpan(*span, location(marks, *span), places_within(lines, *span))


def load_from_json(request: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """Run `load` in a worker process; `request` has `path`, `member` and `loaders`."""
    return asdict(load(Path(request["path"]), request["member"], loaders=request["loaders"], bounds=bounds))


def _content(path: Path, member: str, loaders: Loaders, ocr_languages: str) -> tuple[str, Content]:
    """Return the media type and the content."""
    suffix, readable = within(path, member).suffix.lower(), {**formats(), **loaders}
    if suffix == ZIP and suffix not in loaders:
        members_of(path)
        raise DocumentError("has no files in it. Fill it, or leave it out.")
    if suffix not in readable and not is_folder(path):
        raise DocumentError(
            f"files of this type are not read. Convert it to one of {', '.join(filter(None, readable))}."
        )
    data = read_original(path, member)  # also for a loader class: its own errors for an unreadable file are poor
    if suffix in loaders:
        return "text/plain", _read_with(loaders[suffix], path, member, data)
    media_type, content = _read(suffix, data, ocr_languages)
    if not any(section.text.strip() for section in content.sections):
        raise DocumentError(_reason_for_no_text(media_type, data))
    doubt = encoding_doubt(data) if media_type.startswith("text/") and media_type != "text/html" else ""
    return media_type, replace(content, note=content.note or doubt)


def _read(suffix: str, data: bytes, ocr_languages: str) -> tuple[str, Content]:
    """Return the media type and the content of a file, with that of the attachments of a mail."""

    def attachment(name: str, data: bytes) -> Sequence[Section]:
        inner = PurePath(name).suffix.lower()
        with damage_of(f"a {inner} file"):
            return _read(inner, data, ocr_languages)[1].sections if inner in formats() and inner else ()

    if pointer := _POINTER.match(data):
        tool, command = ("Git LFS", "git lfs pull") if pointer[1] else ("git-annex", "git annex get")
        raise DocumentError(f"is a pointer of {tool}: its content is not on this computer. Get it with `{command}`.")
    format = formats()[suffix]
    if format.reader in BINARY and _PAGE.match(data):
        raise DocumentError("is a web page under another suffix, perhaps one to log in. Download the file again.")
    more = (ocr_languages,) if suffix == ".pdf" else (attachment,) if format.reader in MAILS else ()
    return format.media_type, reader_of(suffix)(data, *more)


def _reason_for_no_text(media_type: str, data: bytes) -> str:
    if not data.strip():
        return "has no text, only white space. Fill it, or leave it out."
    if media_type in ("text/csv", "text/tab-separated-values"):
        return "has the names of columns, but no rows. Fill it, or leave it out."
    if media_type == "text/html" and b"<script" in data.lower():
        return "shows its text only by scripts. Save the page from a browser."
    if data.startswith(b"PK") and re.search(rb"/media/\S*?\.(png|jpe?g|gif|emf|wmf|svg|tiff?)PK", data, re.IGNORECASE):
        return "has pictures and no text. Save it as PDF: its pages are read by OCR."
    return "has no text in it. Fill it, or leave it out."


def _read_with(loader: str, path: Path, member: str, data: bytes) -> Content:
    """Read a file with a loader class, which takes a path: a file of an archive is unpacked."""
    with needs_part("formats", "SLEUTH_LOADERS"):
        from sleuth.tools.documents.community_loaders import read_with

    if not member:
        return read_with(loader, path)
    with TemporaryDirectory() as folder:
        unpacked = Path(folder) / Path(member).name
        unpacked.write_bytes(data)
        return read_with(loader, unpacked)


def read_original(path: Path, member: str = "") -> bytes:
    """Return the bytes of a file, or of a file in a zip archive; raise DocumentError if it cannot be read."""
    data = read_bytes(path)
    return read_member(data, member, limit=MAX_FILE_BYTES) if member else data


def _modified(path: Path) -> str:
    """Return the date of the last modification of a file, in UTC."""
    try:
        return clean_date(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, OverflowError, ValueError):
        return ""


def _title_from_name(path: PurePath) -> str:
    """Return a title from a file's name: `the-old_mill.txt` becomes "The old mill"."""
    words = title_from(printable(PurePath(path.stem)).replace("_", " ").replace("-", " "))
    words = words or printable(PurePath(path.name))
    return words[:1].upper() + words[1:]
