"""What an ingest has to read, in a file: its checkpoints then hold a place in it, not ten thousand paths.

All functions block: call them in a thread.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sleuth.tools.bounds import shown
from sleuth.tools.community import check_names
from sleuth.tools.errors import StoreError
from sleuth.tools.loaders import NO_LOADERS, Loaders, find_files, is_supported


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One file to read, the document id that it asks for, and where the next item begins."""

    path: Path
    document_id: str
    next_offset: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """How many files are on the list, and how many in the folders are of no type that is read."""

    files: int
    passed_over: int


def write_worklist(place: Path, roots: Sequence[Path], *, loaders: Loaders = NO_LOADERS) -> Found:
    """Lists the files below `roots`, each once; raises UsageError for a root or a loader class that is not there."""
    check_names(loaders.values())
    files = passed_over = 0
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(".new")
        try:
            with draft.open("w", encoding="utf-8") as out:
                for path, document_id in _candidates(roots, loaders):
                    if document_id is None:
                        passed_over += 1
                        continue
                    files += 1
                    out.write(json.dumps([os.fspath(path), document_id]) + "\n")
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"The list of files cannot be written to {place.parent}: {error}") from error
    return Found(files=files, passed_over=passed_over)


def read_item(place: Path, offset: int) -> Item | None:
    """The item that begins at this byte of the list; None at its end."""
    with place.open("rb") as lines:
        lines.seek(offset)
        line = lines.readline()
    if not line:
        return None
    path, document_id = json.loads(line)
    return Item(path=Path(path), document_id=document_id, next_offset=offset + len(line))


def _candidates(roots: Iterable[Path], loaders: Loaders) -> Iterator[tuple[Path, str | None]]:
    """Absolute paths with the ids that they ask for; None for what is passed over."""
    seen: set[Path] = set()
    for root in roots:
        for file in find_files([root]):
            path = file.absolute()
            if path in seen:
                continue
            seen.add(path)
            relative = file.relative_to(root).as_posix() if file != root else file.name
            yield path, shown(PurePosixPath(relative)) if file == root or is_supported(file, loaders) else None
