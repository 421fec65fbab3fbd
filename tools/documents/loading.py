"""Loading of files of many formats as titled text; an unreadable file is an error of that file only.

All functions and methods block: call them in a thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sleuth.tools.documents.binary_formats import read_docx, read_pdf
from sleuth.tools.documents.community_loaders import read_with
from sleuth.tools.documents.plain_formats import read_html, read_markdown, read_plain, read_table
from sleuth.tools.documents.resource_limits import BOUNDS, Bounds, is_folder, ordinary_size, printable
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError
from sleuth.tools.text import normalize, title_from

MIB = 1 << 20
MAX_FILE_BYTES = 64 * MIB
LIGHT_BYTES = 256 << 10
"""Plain text up to this size is read in this process: its time and memory grow with its size alone."""

Loaders = Mapping[str, str]
"""The loader class of langchain-community for files with a suffix: `{".ipynb": "NotebookLoader"}`."""
NO_LOADERS: Loaders = MappingProxyType({})

FORMATS: dict[str, tuple[str, Callable[[bytes], tuple[str | None, str]]]] = {
    ".txt": ("text/plain", read_plain),
    ".md": ("text/markdown", read_markdown),
    ".markdown": ("text/markdown", read_markdown),
    ".html": ("text/html", read_html),
    ".htm": ("text/html", read_html),
    ".pdf": ("application/pdf", read_pdf),
    ".docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", read_docx),
    ".csv": ("text/csv", read_table),
    ".tsv": ("text/tab-separated-values", read_table),
}
"""The media type of files with a suffix, and the function that returns their title and text."""
_PLAIN = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv"})
"""Suffixes of files that are read without a parser of any size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedDocument:
    """The text of one file. HTML and Word files become Markdown; `media_type` is that of the file.

    The text from a loader class is plain text, whatever the file's type.
    """

    title: str
    text: str
    media_type: str


class FileReader:
    """Reader of single files in a worker process: a file that crashes the parser or exceeds a limit only fails itself.

    `stop` ends the worker process, `close` ends it for good.
    """

    def __init__(self, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> None:
        self._loaders = loaders
        self._bounds = bounds
        self._worker = Worker("file", bounds)
        self.stop = self._worker.stop
        self.close = self._worker.close

    def read(self, path: Path) -> LoadedDocument:
        """Read one file.

        Raises:
            DocumentError: the file has no text, cannot be parsed or exceeds the bounds.
            StoreError: the reader is closed.
        """
        if self._is_light(path):
            return load(path, loaders=self._loaders, bounds=self._bounds)
        given = {"path": str(path), "loaders": dict(self._loaders)}
        try:
            read = self._worker.call(given, seconds=self._bounds.patience)
        except WorkerError as error:
            raise DocumentError(f"{printable(path)}: {self._reason(error)}") from error
        if "error" in read:
            raise DocumentError(read["error"])
        return LoadedDocument(**read)

    def _is_light(self, path: Path) -> bool:
        """Return whether the file needs no worker, which is also so if it cannot be opened."""
        try:
            size = ordinary_size(path)
        except (DocumentError, OSError):
            return True
        return size == 0 or (size <= LIGHT_BYTES and path.suffix.lower() in _PLAIN - self._loaders.keys())

    def _reason(self, error: WorkerError) -> str:
        bounds = self._bounds
        return {
            "time": f"was given up after {bounds.patience:g} s. Leave it out.",
            "memory": f"takes more than {bounds.megabytes:,} MB to read. Split it, or raise SLEUTH_FILE_MEGABYTES.",
            "processor": f"takes more than {bounds.seconds:,} s to read. Split it, or raise SLEUTH_FILE_SECONDS.",
            "signal": f"crashes the parser ({error.detail}). Save it again, or leave it out.",
            "exit": f"cannot be read ({error.detail}). Save it again, or leave it out.",
        }[error.cause]


def load(path: Path, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> LoadedDocument:
    """Read one file; a loader class for its suffix takes precedence over the built-in reader.

    Reads in this process and enforces only the limit on characters. `FileReader` enforces all bounds.

    Raises:
        DocumentError: the file has no readable text; the message contains the reason and the remedy.
        UnknownName: the loader class does not exist.
    """
    try:
        media_type, title, text = _content(path, loaders)
        text = normalize(text)
        if not text.strip():
            raise DocumentError("has no text in it. Fill it, or leave it out.")
        if len(text) > bounds.characters:
            size = f"has {len(text):,} characters of text, and at most {bounds.characters:,} are read"
            raise DocumentError(f"{size}. Split it, or raise SLEUTH_FILE_CHARACTERS.")
    except DocumentError as error:
        raise DocumentError(f"{printable(path)}: {error}") from error.__cause__
    title = title_from(normalize(title or "")) or _title_from_name(path)
    return LoadedDocument(title=title, text=text, media_type=media_type)


def load_from_json(given: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """Run `load` in a worker process; `given` has `path` and `loaders`."""
    return asdict(load(Path(given["path"]), loaders=given["loaders"], bounds=bounds))


def _content(path: Path, loaders: Loaders) -> tuple[str, str | None, str]:
    """Return media type, title and text."""
    suffix, known = path.suffix.lower(), {**FORMATS, **loaders}
    if suffix not in known and not is_folder(path):
        raise DocumentError(f"files of this type are not read. Convert it to one of {', '.join(known)}.")
    data = read_bytes(path)  # also for a loader class, whose own words for a file that cannot be read are poor
    if suffix in loaders:
        return ("text/plain", *read_with(loaders[suffix], path))
    media_type, reader = FORMATS[suffix]
    return (media_type, *reader(data))


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise DocumentError if it cannot be opened, is too large or empty."""
    try:
        if (size := ordinary_size(path)) > MAX_FILE_BYTES:
            most = MAX_FILE_BYTES / MIB
            raise DocumentError(f"has {size / MIB:,.1f} MiB, and at most {most:,.1f} MiB are read. Split it.")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be opened ({error.strerror}). Check that it exists and is readable.") from error
    if not data:
        raise DocumentError("is empty. Fill it, or leave it out.")
    return data


def _title_from_name(path: Path) -> str:
    """Return a title from a file's name: `the-old_mill.txt` becomes "The old mill"."""
    words = title_from(printable(Path(path.stem)).replace("_", " ").replace("-", " ")) or printable(Path(path.name))
    return words[:1].upper() + words[1:]
