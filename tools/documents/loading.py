"""Loading of files of many formats as titled text; an unreadable file is an error of that file only."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sleuth.tools.documents.binary_formats import read_docx, read_pdf
from sleuth.tools.documents.community_loaders import read_with
from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.plain_formats import read_html, read_markdown, read_plain, read_table
from sleuth.tools.documents.resource_limits import BOUNDS, Bounds, ordinary_size, printable
from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.text import normalize, title_from

MIB = 1 << 20
MAX_FILE_BYTES = 64 * MIB

Loaders = Mapping[str, str]
"""The loader class of langchain-community for files with a suffix: `{".ipynb": "NotebookLoader"}`."""
NO_LOADERS: Loaders = MappingProxyType({})

Reader = Callable[[bytes], tuple[str | None, str]]

_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_FORMATS: dict[str, tuple[str, Reader]] = {
    ".txt": ("text/plain", read_plain),
    ".md": ("text/markdown", read_markdown),
    ".markdown": ("text/markdown", read_markdown),
    ".html": ("text/html", read_html),
    ".htm": ("text/html", read_html),
    ".pdf": ("application/pdf", read_pdf),
    ".docx": (_DOCX, read_docx),
    ".csv": ("text/csv", read_table),
    ".tsv": ("text/tab-separated-values", read_table),
}
_PLAIN = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv"})
"""What is read without a parser of any size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedDocument:
    """The text of one file. HTML and Word files become Markdown; `media_type` is that of the file.

    The text from a loader class is plain text, whatever the file's type.
    """

    title: str
    text: str
    media_type: str


def is_plain(path: Path, loaders: Loaders = NO_LOADERS) -> bool:
    """Return whether it is text that is merely decoded, by its suffix."""
    return path.suffix.lower() in _PLAIN - loaders.keys()


def is_supported(path: Path, loaders: Loaders = NO_LOADERS) -> bool:
    """Return whether the path is worth reading: a known suffix, or a folder that `find_files` could not open."""
    return path.suffix.lower() in {*_FORMATS, *loaders} or is_corpus(path) or _is_folder(path)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is read only if it is named."""
    return name.startswith(".")


def find_files(paths: Iterable[Path], *, hidden: bool = False) -> Iterator[Path]:
    """Yield the named files, and all files in the named folders, in order of name and each once.

    Hidden files and folders are skipped unless they are named; with `hidden` they are yielded too, but not the files in
    such a folder. A folder that may not be read is yielded itself, so that `load` can report it. Raises UsageError for
    a missing path.
    """
    seen: set[str] = set()
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110  (Path.exists raises where a folder above may not be entered)
            raise UsageError(f"There is no file or folder {str(path)!r}. Check the spelling and the working folder.")
        for file in _walk(path, frozenset(), hidden) if _is_folder(path) else (path,):
            if (place := os.path.abspath(file)) not in seen:  # noqa: PTH100
                seen.add(place)
                yield file


def _walk(folder: Path, above: frozenset[tuple[int, int]], hidden: bool) -> Iterator[Path]:
    """Yield files below a folder; a link back to a folder that is being walked is not followed."""
    try:
        status = folder.stat()
        with os.scandir(folder) as listing:
            entries = sorted((each for each in listing if hidden or not is_hidden(each.name)), key=lambda e: e.name)
    except OSError:
        yield folder
        return
    here = above | {(status.st_dev, status.st_ino)}
    if len(here) == len(above):
        return
    for entry in entries:
        if _is_folder(entry) and not is_hidden(entry.name):
            yield from _walk(folder / entry.name, here, hidden)
        else:
            yield folder / entry.name


def _is_folder(place: Path | os.DirEntry[str]) -> bool:
    """Return a link to itself, or into a closed folder, is none."""
    try:
        return place.is_dir()
    except OSError:
        return False


def load(
    path: Path, *, loaders: Loaders = NO_LOADERS, max_bytes: int = MAX_FILE_BYTES, bounds: Bounds = BOUNDS
) -> LoadedDocument:
    """Read one file; a loader class for its suffix takes precedence over the built-in reader.

    Reads in this process and enforces only the limit on characters. `FileReader` enforces all bounds.

    Raises:
        DocumentError: the file has no readable text; the message contains the reason and the remedy.
        UnknownName: the loader class does not exist.
    """
    try:
        media_type, title, text = _content(path, loaders, max_bytes)
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


def _content(path: Path, loaders: Loaders, max_bytes: int) -> tuple[str, str | None, str]:
    """Return media type, title and text."""
    suffix, known = path.suffix.lower(), {**_FORMATS, **loaders}
    if suffix not in known and not _is_folder(path):
        raise DocumentError(f"files of this type are not read. Convert it to one of {', '.join(known)}.")
    data = read_bytes(
        path, max_bytes
    )  # also for a loader class, whose own words for a file that cannot be read are poor
    if suffix in loaders:
        return ("text/plain", *read_with(loaders[suffix], path))
    media_type, reader = _FORMATS[suffix]
    return (media_type, *reader(data))


def read_bytes(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file; raise DocumentError if it cannot be opened, is too large or empty."""
    try:
        if (size := ordinary_size(path)) > max_bytes:
            raise DocumentError(
                f"has {size / MIB:,.1f} MiB, and at most {max_bytes / MIB:,.1f} MiB are read. Split it."
            )
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
