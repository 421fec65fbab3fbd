"""The files of an ingest: those in folders and archives, with the reason for each one that is passed over.

All functions block: call them in a thread.
"""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.formats.archives import ZIP, members_of
from sleuth.tools.documents.loading import NO_LOADERS, Loaders, is_sidecar
from sleuth.tools.documents.readers import formats
from sleuth.tools.documents.resource_limits import is_folder, ordinary_size, printable
from sleuth.tools.errors import DocumentError, UsageError, needs_part
from sleuth.tools.text.encodings import decode

NOT_READ = "files of this type are not read. Convert it, for example to PDF or text."
HIDDEN = "is hidden. Name it to read it."
LOCKS = ("~$", ".~lock.")
"""Beginnings of the names of the lock files that Office programs leave next to an open document."""
_BEGINNING = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A file, or one in a zip archive, with the preferred id of its document, or the reason to pass it over."""

    path: Path
    document_id: str
    member: str = ""
    reason: str = ""

    @property
    def source(self) -> str:
        """The path, for a file in an archive that of the archive with its name in it."""
        return printable(self.path, self.member)


def list_files(
    roots: Sequence[Path], *, loaders: Loaders = NO_LOADERS, only: Container[Path] | None = None
) -> tuple[list[Item], list[str]]:
    """Return the files below `roots`, each once, and a line for each one passed over; `only` restricts the files.

    Raises:
        UsageError: a root or a loader class does not exist.
    """
    items = list(find_files(roots, loaders))
    files = [item for item in items if not item.reason and (only is None or item.path in only)]
    return files, [f"{item.source}: {item.reason}" for item in items if item.reason]


def absolute(path: Path) -> Path:
    """Return an absolute path without `..`, so that a file has one path; links are resolved only where one has `..`."""
    return path.resolve() if ".." in path.parts else path.absolute()


def find_files(roots: Iterable[Path], loaders: Loaders) -> Iterator[Item]:
    """Yield the named files, and all files in the named folders in order of name, each once, without lock files.

    A hidden folder is yielded instead of its files, unless it is named. A folder that may not be read, and an archive
    that cannot be opened, are yielded so that reading them reports the error. Raises as `list_files`.
    """
    if loaders:
        with needs_part("formats", "SLEUTH_LOADERS"):
            from sleuth.tools.documents.community_loaders import check_names

        check_names(loaders.values())
    seen: set[Path] = set()
    for root in roots:
        if not os.path.exists(root):  # noqa: PTH110  (Path.exists raises where a folder above may not be entered)
            raise UsageError(f"There is no file or folder {str(root)!r}. Check the spelling and the working folder.")
        for file in _walk(root, frozenset()) if is_folder(root) else (root,):
            path = file.absolute()
            if path in seen or is_sidecar(path) or path.name.startswith(LOCKS):
                continue
            seen.add(path)
            relative = PurePosixPath(file.relative_to(root).as_posix() if file != root else file.name)
            reason = "" if file == root else _reason(file, loaders)
            if path.suffix.lower() == ZIP and ZIP not in loaders and path.is_file() and reason != HIDDEN:
                yield from _members(path, relative, loaders)
            else:
                yield Item(path=path, document_id=printable(relative), reason=reason)


def _members(archive: Path, relative: PurePosixPath, loaders: Loaders) -> Iterator[Item]:
    try:
        names = members_of(archive)
    except DocumentError:
        yield Item(path=archive, document_id=printable(relative))
        return
    for name in names:
        suffix = PurePosixPath(name).suffix.lower()
        is_read = suffix in {*formats(), *loaders}
        reason = "archives in archives are not read. Unpack it." if suffix == ZIP else NOT_READ
        yield Item(path=archive, document_id=printable(relative, name), member=name, reason="" if is_read else reason)


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path]:
    """Yield files below a folder; a link back to a folder that is being walked is not followed."""
    try:
        status = folder.stat()
        entries = sorted(os.listdir(folder))  # noqa: PTH208 - names are enough
    except OSError:
        yield folder
        return
    here = above | {(status.st_dev, status.st_ino)}
    if len(here) == len(above):
        return
    for name in entries:
        if is_folder(folder / name) and not name.startswith("."):
            yield from _walk(folder / name, here)
        else:
            yield folder / name


def _reason(file: Path, loaders: Loaders) -> str:
    """Return the reason to pass over a file in a folder; empty where there is none."""
    if file.name.startswith("."):
        return HIDDEN
    if is_corpus(file) or is_folder(file):
        return ""
    if not file.suffix and not _is_text(file):
        return "has no suffix, and is not text."
    return "" if file.suffix.lower() in {*formats(), *loaders} else NOT_READ


def _is_text(file: Path) -> bool:
    """Return whether the beginning of a file is text; True if it cannot be read, so that reading it reports why."""
    try:
        ordinary_size(file)
        with file.open("rb") as stream:
            decode(stream.read(_BEGINNING))
    except OSError:
        return True
    except DocumentError:
        return False
    return True
