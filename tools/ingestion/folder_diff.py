"""Difference between a folder and a collection: the documents that a synchronization adds, updates and removes.

All functions and methods block: call them in a thread.
"""

import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from sleuth.tools.collection import Collection
from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import Item, find_files
from sleuth.tools.documents.formats.archives import ZIP
from sleuth.tools.documents.resource_limits import is_folder, printable
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.batch_reader import BatchReader, Failure, is_missing
from sleuth.tools.storage.catalogue import Catalogue, Difference


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderDiff:
    """Documents in which a folder and a collection differ, by their path below the folder.

    A line of a corpus is named by the path of the corpus and its id.

    Attributes:
        folder: the folder, as an absolute path.
        added: files and lines that the collection does not have; perhaps some that cannot be read.
        updated: files and lines whose content has changed.
        removed: documents whose file or line no longer exists, by id.
        unchanged: number of equal documents.
        stored: number of documents of the folder before.
        lost: number of removed documents whose text no new file has, if they are more than half; else 0.
        failures: files that cannot be read; their documents are kept.
        unreadable: files that an earlier synchronization named, with the same content.
        paths: the files to ingest.
    """

    folder: Path
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    unchanged: int = 0
    stored: int = 0
    lost: int = 0
    failures: tuple[Failure, ...] = ()
    unreadable: tuple[str, ...] = ()
    paths: frozenset[Path] = frozenset()

    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.added or self.updated or self.removed)


def compare_files(folder: Path, changed: Set[Path] | None, collection: Collection, reader: BatchReader) -> FolderDiff:
    """Compare a folder with the documents of a collection by path and content; new files are not read.

    Args:
        folder: Absolute path; only documents whose source is below it can be removed.
        changed: The files and folders that may have changed; all if None.
        collection: Its documents from files below SLEUTH_HOME, which are uploads, are left out.
        reader: Reads the files.

    Raises:
        UsageError: the folder does not exist, or is a file.
    """
    if folder.is_file():
        raise UsageError(f"{str(folder)!r} is a file. Name a folder, or read the file with `sleuth ingest`.")
    catalogue, home = collection.catalogue, collection.settings.home.absolute()
    files = {item.source: item for item in find_files([folder], collection.settings.loaders) if not item.reason}
    stored = catalogue.sources_below(os.path.join(printable(folder), ""))  # noqa: PTH118 - ends with "/"
    stored = {id_: source for id_, source in stored.items() if not Path(source).is_relative_to(home)}
    considered = [
        item
        for item in files.values()
        if changed is None or any(path in changed for path in (item.path, *item.path.parents))
    ]
    new = {item.source for item in considered} - set(stored.values())
    new -= {item.source for item in considered if _must_read(item.path)}
    read = {item.source: item for item in considered if item.source not in new}
    failures, sources, differences = list[Failure](), dict[str, str](), dict[str, Difference]()
    for batch in reader.batches(read.values()):
        failures += batch.failures
        sources |= {entry.document.id: entry.document.source for entry in batch.entries}
        differences |= catalogue.compare(batch.entries)
    ids = {kind: [id_ for id_, actual in differences.items() if actual == kind] for kind in get_args(Difference)}
    failed = {failure.source for failure in failures}
    unread = {id_: source for id_, source in stored.items() if id_ not in sources}
    removed = {id_: source for id_, source in unread.items() if _is_gone(source, files, read.keys() - failed)}
    paths = {files[source].path for source in (*new, *(sources[id_] for id_ in (*ids["added"], *ids["updated"])))}
    if any(map(is_corpus, paths)):  # of lines with equal ids the last one is stored
        paths |= {item.path for item in files.values() if is_corpus(item.path)}
    names = {id_: _name(id_, source, folder) for id_, source in (sources | removed).items()}
    return FolderDiff(
        folder=folder,
        added=(*(_below(source, folder) for source in files if source in new), *(names[id_] for id_ in ids["added"])),
        updated=tuple(names[id_] for id_ in ids["updated"]),
        removed={id_: names[id_] for id_ in removed},
        unchanged=len(ids["unchanged"]),
        stored=len(stored),
        lost=_count_lost(len(stored), removed, [files[source] for source in new], catalogue, reader),
        failures=tuple(failures),
        paths=frozenset(paths),
    )


def _count_lost(
    stored: int, removed: Iterable[str], new: Iterable[Item], catalogue: Catalogue, reader: BatchReader
) -> int:
    hashes = catalogue.content_hashes([*removed])
    if 2 * len(hashes) <= stored:  # as a rule: the new files are not read
        return 0
    moved = {entry.document.content_hash for batch in reader.batches(new) for entry in batch.entries}
    lost = sum(mark not in moved for mark in hashes.values())
    return lost if 2 * lost > stored else 0


def _must_read(path: Path) -> bool:
    """Return whether a new file is compared too.

    A corpus is compared by its lines, an archive by its files, and a folder for the reason of its failure.
    """
    return is_corpus(path) or is_folder(path) or path.suffix.lower() == ZIP


def _is_gone(source: str, files: Mapping[str, Item], read: Set[str]) -> bool:
    """Return whether a stored document that was not read no longer exists in the folder.

    A line is not removed from a corpus that was read with failures: it may be among them.
    """
    if source in files:
        return is_corpus(Path(source)) and source in read
    return is_missing(Path(source)) and not any(str(above) in files for above in Path(source).parents)


def _name(id_: str, source: str, folder: Path) -> str:
    """Return the path of a document below the folder; for a line of a corpus with its id."""
    path = _below(source, folder)
    return f"{path}: {id_}" if is_corpus(Path(path)) else path


def _below(source: str, folder: Path) -> str:
    return os.path.relpath(source, printable(folder))
