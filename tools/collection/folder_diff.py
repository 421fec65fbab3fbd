"""Difference between a folder and a collection: the documents that a synchronization adds, updates and removes.

All functions and methods block: call them in a thread.
"""

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from sleuth.tools.collection.batch_reader import BatchReader, is_missing
from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import Item, find_files, list_files
from sleuth.tools.documents.formats.archives import ZIP
from sleuth.tools.documents.loading import Loaders
from sleuth.tools.documents.resource_limits import is_folder, printable
from sleuth.tools.errors import UsageError
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
        failures: reasons why files cannot be read; their documents are kept.
        paths: the files to ingest.
    """

    folder: Path
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    unchanged: int = 0
    failures: tuple[str, ...] = ()
    paths: frozenset[Path] = frozenset()

    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.added or self.updated or self.removed)


@dataclass(kw_only=True, slots=True)
class _Comparison:
    """Documents of the files that were read: source and difference of each by id, and reasons for failures."""

    sources: dict[str, str] = field(default_factory=dict)
    differences: dict[str, Difference] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def ids(self, kind: Difference) -> list[str]:
        """Return the documents with a difference."""
        return [id_ for id_, difference in self.differences.items() if difference == kind]


def compare_folder(
    folder: Path,
    changed: Set[Path] | None = None,
    *,
    catalogue: Catalogue,
    reader: BatchReader,
    loaders: Loaders,
    home: Path,
) -> FolderDiff:
    """Compare a folder with the documents of a collection by path and content; new files are not read.

    Args:
        folder: Absolute path; only documents whose source is below it can be removed.
        changed: The files and folders that may have changed; all if None.
        catalogue: The collection's catalogue.
        reader: Reads the files.
        loaders: Loader class per further file suffix.
        home: SLEUTH_HOME; documents from files below it, which are uploads, are left out.

    Raises:
        UsageError: the folder does not exist, or is a file.
    """
    if folder.is_file():
        raise UsageError(f"{str(folder)!r} is a file. Name a folder, or read the file with `sleuth ingest`.")
    files = {found.source: found.path for found in find_files([folder], loaders) if not found.reason}
    stored = catalogue.sources_below(os.path.join(printable(folder), ""))  # noqa: PTH118 - ends with "/"
    stored = {id_: source for id_, source in stored.items() if not Path(source).is_relative_to(home)}
    known = set(stored.values())
    considered = {source: path for source, path in files.items() if _is_among(path, changed)}
    new = [source for source, path in considered.items() if source not in known and not _must_read(path)]
    read = {source: path for source, path in considered.items() if source not in new}
    found = _read(list_files([folder], loaders=loaders, only=set(read.values()))[0], catalogue, reader)
    removed = {id_: source for id_, source in stored.items() if _is_removed(id_, source, files, read, found)}
    added, updated = found.ids("added"), found.ids("updated")
    paths = {files[source] for source in (*new, *(found.sources[id_] for id_ in (*added, *updated)))}
    if any(map(is_corpus, paths)):  # of lines with equal ids the last one is stored
        paths |= set(filter(is_corpus, files.values()))
    sources = found.sources | removed
    return FolderDiff(
        folder=folder,
        added=(*(_below(source, folder) for source in new), *(_name(id_, sources, folder) for id_ in added)),
        updated=tuple(_name(id_, sources, folder) for id_ in updated),
        removed={id_: _name(id_, sources, folder) for id_ in removed},
        unchanged=len(found.ids("unchanged")),
        failures=tuple(found.failures),
        paths=frozenset(paths),
    )


def _read(files: Sequence[Item], catalogue: Catalogue, reader: BatchReader) -> _Comparison:
    found = _Comparison()
    for batch in reader.batches(files):
        found.failures += batch.failures
        found.sources |= {entry.document.id: entry.document.source for entry in batch.entries}
        found.differences |= catalogue.compare(batch.entries)
    reader.stop()
    return found


def _is_among(path: Path, changed: Set[Path] | None) -> bool:
    """Return whether a file, or a folder above it, may have changed."""
    return changed is None or any(each in changed for each in (path, *path.parents))


def _must_read(path: Path) -> bool:
    """Return whether a new file is compared too.

    A corpus is compared by its lines, an archive by its files, and a folder for the reason of its failure.
    """
    return is_corpus(path) or is_folder(path) or path.suffix.lower() == ZIP


def _is_removed(id_: str, source: str, files: Mapping[str, Path], read: Mapping[str, Path], found: _Comparison) -> bool:
    """Return whether a stored document no longer exists in the folder.

    A line is not removed from a corpus that was read with failures: it may be among them.
    """
    if id_ in found.sources:
        return False
    if source not in files:  # nor in an archive that cannot be opened
        return is_missing(Path(source)) and not any(str(above) in files for above in Path(source).parents)
    failed = any(failure.startswith(source) for failure in found.failures)
    return is_corpus(Path(source)) and source in read and not failed


def _name(id_: str, sources: Mapping[str, str], folder: Path) -> str:
    """Return the path of a document below the folder; for a line of a corpus with its id."""
    path = _below(sources[id_], folder)
    return f"{path}: {id_}" if is_corpus(Path(path)) else path


def _below(source: str, folder: Path) -> str:
    return os.path.relpath(source, printable(folder))
