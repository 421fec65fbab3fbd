"""The metadata of documents that a former release has ingested. All functions block: call them in a thread."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sleuth.tools.collection.batch_reader import with_metadata
from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.errors import DocumentError
from sleuth.tools.storage import Catalogue
from sleuth.tools.types import Document

_PAGE = 200


@dataclass(kw_only=True, slots=True)
class RefreshReport:
    """Result of a refresh: the number of documents with new metadata, and the files that could not be read."""

    documents: int = 0
    updated: int = 0
    unreadable: list[str] = field(default_factory=list)


def refresh_metadata(
    catalogue: Catalogue, files: FileReader, *, everything: bool, on_document: Callable[[str], None]
) -> RefreshReport:
    """Read the metadata of documents from their files; texts and passages do not change.

    A document whose file is missing or unreadable gets the language of its text only.

    Args:
        catalogue: the documents.
        files: the reader of their files.
        everything: also of documents whose metadata is known.
        on_document: is called with the id of each document after it was read.
    """
    report = RefreshReport()
    after = ""
    while page := catalogue.documents_after(after, limit=_PAGE, missing=not everything):
        found = []
        for document in page:
            found.append(_reread(document, files, report))
            on_document(document.id)
        report.documents += len(page)
        report.updated += catalogue.put_metadata(found)
        after = page[-1].id
    files.stop()
    return report


def _reread(document: Document, files: FileReader, report: RefreshReport) -> Document:
    if is_corpus(Path(document.source)):  # its lines are read by the next ingest
        return _without_file(document)
    path, member = _locate(Path(document.source))
    try:
        return with_metadata(document, files.read(path, member))
    except DocumentError as error:
        report.unreadable.append(str(error))
        return _without_file(document)


def _without_file(document: Document) -> Document:
    return with_metadata(document) if document.language is None else document


def _locate(source: Path) -> tuple[Path, str]:
    """Return the file of a source, and the name in it if the file is an archive."""
    with suppress(OSError):  # the name is too long, or a folder may not be entered
        if not source.exists():
            for above in source.parents:
                if above.is_file():
                    return above, source.relative_to(above).as_posix()
    return source, ""
