"""Reader that turns files into catalogue entries, a batch at a time.

All methods block: call them in a thread.
"""

import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from sleuth.tools.documents.corpus import is_corpus, read_corpus
from sleuth.tools.documents.file_list import Item
from sleuth.tools.documents.loading import MAX_SOURCE_BYTES, LoadedDocument
from sleuth.tools.documents.parallel_reading import Workers, read_ahead
from sleuth.tools.documents.resource_limits import printable
from sleuth.tools.errors import DocumentError
from sleuth.tools.storage.catalogue import Catalogue, Difference, Entry, Stored
from sleuth.tools.text.language import detect_language
from sleuth.tools.types import Document, Passage, content_hash, now

# A batch ends at the first of these limits: passages (enough to fill embedding batches, few enough to repeat after a
# kill), files, and characters in memory.
_BATCH_PASSAGES = 512
_BATCH_FILES = 256
_BATCH_CHARACTERS = 8_000_000

_DIFFERENCES: tuple[Difference, ...] = ("unchanged", "added", "updated")


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that cannot be read, or a line of it.

    Attributes:
        path: the file; the archive of a file in an archive.
        source: the path, with the name in an archive.
        message: the path, the reason and the remedy.
    """

    path: Path
    source: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(kw_only=True, slots=True)
class Batch:
    """Entries read together.

    sources: the file of each document that is no line of a corpus, by id, with its name in it if it is an archive.
    """

    entries: list[Entry] = field(default_factory=list)
    sources: dict[str, tuple[Path, str]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    passages: int = 0
    characters: int = 0

    def is_full(self) -> bool:
        """Return whether the batch has reached a limit."""
        large = self.passages >= _BATCH_PASSAGES or self.characters >= _BATCH_CHARACTERS
        return large or max(self.files, len(self.failures)) >= _BATCH_FILES

    def add(self, entry: Entry) -> None:
        """Add a document."""
        self.entries.append(entry)
        self.passages += len(entry.passages)
        self.characters += len(entry.document.text)

    def new_passages(self, stored: Stored) -> tuple[list[Passage], list[str | None]]:
        """Return the passages of the documents that were added or updated, and the language of each whole document."""
        pairs = [
            (passage, entry.document.language if passage.text == entry.document.text else None)
            for entry in self.entries
            if stored.differences[entry.document.id] != "unchanged"
            for passage in entry.passages
        ]
        return [passage for passage, _ in pairs], [language for _, language in pairs]

    def files_of(self, stored: Stored) -> dict[str, Difference]:
        """Return what happened to each file; of a file with several documents, the largest difference."""
        differences: dict[str, Difference] = {}
        for document in (entry.document for entry in self.entries):
            file = str(self.sources.get(document.id, [document.source])[0])
            difference = stored.differences[document.id]
            differences[file] = max(differences.get(file, difference), difference, key=_DIFFERENCES.index)
        return differences


class BatchReader:
    """Reader of files in batches."""

    def __init__(self, catalogue: Catalogue, workers: Workers) -> None:
        self._catalogue = catalogue
        self._workers = workers

    def batches(self, items: Iterable[Item], stopped: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
        """Yield the content of files; the failures of a batch are the files that cannot be read.

        It ends after the present document when `stopped` returns True. The worker processes run until they are stopped.
        """
        batch = Batch()
        documents: Iterable[LoadedDocument | DocumentError]
        for item, loaded in read_ahead(items, self._workers.submit, self._workers.count):
            documents = [loaded] if loaded else read_corpus(item.path)
            if len(item.source.encode()) > MAX_SOURCE_BYTES:
                problem = f"its path has more than {MAX_SOURCE_BYTES:,} bytes. Give it a shorter name."
                documents = [DocumentError(f"{item.source[:200]}…: {problem}")]
            for document in documents:
                self._add(batch, item, document)
                batch.files += loaded is not None
                if batch.is_full() or stopped():
                    yield self._refuse_duplicate_ids(batch)
                    batch = Batch()
                    if stopped():
                        return
            batch.files += loaded is None  # a corpus counts when all its lines were read
        yield self._refuse_duplicate_ids(batch)

    def _add(self, batch: Batch, item: Item, loaded: LoadedDocument | DocumentError) -> None:
        source = item.source
        if isinstance(loaded, DocumentError):
            batch.failures.append(Failure(item.path, source, str(loaded)))
        elif loaded.id:
            batch.add(make_entry(document_id=loaded.id, source=source, loaded=loaded))
        else:
            document_id = self._free_id(item.document_id, source, loaded.text, batch)
            former = self._catalogue.sources_of_ids([item.document_id]).get(item.document_id, source)
            if document_id != item.document_id and not exists(Path(former)):
                delete = f"`sleuth docs delete {item.document_id}` removes the former one"
                batch.notes.append(f"{source}: perhaps moved from {former}, which is gone: {delete}.")
            batch.sources[document_id] = item.path, item.member
            batch.add(make_entry(document_id=document_id, source=source, loaded=loaded))
            batch.notes += [f"{source}: {loaded.note}"] if loaded.note else []

    def _refuse_duplicate_ids(self, batch: Batch) -> Batch:
        """Refuse corpus lines with the id of a file or of one of its passages: storing them would replace it."""
        corpora = {source for source in {entry.document.source for entry in batch.entries} if is_corpus(Path(source))}
        lines = [entry for entry in batch.entries if entry.document.source in corpora]
        files = [entry for entry in batch.entries if entry.document.source not in corpora]
        holders = self._holders(list({line.document.id: None for line in lines}), files if lines else [])
        for line in (line for line in lines if line.document.id in holders):
            problem = f"the id {line.document.id!r} belongs to the file {holders[line.document.id]}"
            message = f"{line.document.source}: {problem}. That line was not read: give it another id."
            batch.failures.append(Failure(Path(line.document.source), line.document.source, message))
            batch.entries.remove(line)
        return batch

    def _holders(self, ids: Sequence[str], files: Sequence[Entry]) -> dict[str, str]:
        """Return the files that have these ids for documents or passages; `files` are not stored yet."""
        holders = {passage.id: entry.document.source for entry in files for passage in entry.passages}
        holders |= {entry.document.id: entry.document.source for entry in files}
        stored = self._catalogue.passages(ids)
        holders |= {passage.id: passage.document_id for passage in stored if passage.id != passage.document_id}
        sources = self._catalogue.sources_of_ids(ids)
        return holders | {id_: source for id_, source in sources.items() if not is_corpus(Path(source))}

    def _free_id(self, preferred: str, source: str, text: str, batch: Batch) -> str:
        """Return the present id of a source; else the preferred one, with a suffix if another source has it.

        A file that was moved has the id of the former one.
        """
        present = self._catalogue.ids_of_sources([source]).get(source)
        if present is not None:
            return present
        if preferred in batch.sources:
            is_free = printable(*batch.sources[preferred]) == source
        else:
            holder = self._catalogue.sources_of_ids([preferred]).get(preferred)
            is_free = holder is None or (
                not exists(Path(holder)) and self._catalogue.get_document(preferred).text == text
            )
        return preferred if is_free else f"{preferred}~{sha256(source.encode()).hexdigest()[:8]}"


def exists(path: Path) -> bool:
    """Return whether a file exists, or the archive that it is in; also if that cannot be examined."""
    return not is_missing(path) or any(above.is_file() for above in path.parents)


def is_missing(path: Path) -> bool:
    """Return whether there is no such file; False if that cannot be examined."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def make_entry(*, document_id: str, source: str, loaded: LoadedDocument) -> Entry:
    """Return a document with its passages.

    A passage of a file that is unchanged keeps its id when the file changes; that of a corpus line has the line's id.
    """
    seen: dict[str, int] = {}
    passages = []
    for start, end, location, places in loaded.spans:
        text = loaded.text[start:end]
        mark = content_hash(text)[:8]
        seen[mark] = seen.get(mark, 0) + 1
        repeat = f"-{seen[mark]}" if seen[mark] > 1 else ""
        passages.append(
            Passage(
                id=loaded.id or f"{document_id}#{mark}{repeat}",
                document_id=document_id,
                title=loaded.title,
                text=text,
                start=start,
                end=end,
                location=location,
                places=places,
            )
        )
    document = Document(
        id=document_id,
        title=loaded.title,
        source=source,
        text=loaded.text,
        media_type=loaded.media_type,
        content_hash=content_hash(loaded.text),
        added_at=now(),
        author=loaded.author,
        date=loaded.date,
        language=detect_language(loaded.text) or "",
        tags=loaded.tags,
        meta=loaded.meta,
    )
    return Entry(document=document, passages=tuple(passages))
