"""Copies of ingested files, so that a citation can be shown in the file itself.

They are below SLEUTH_HOME, by catalogue, owner and content. The catalogue names the copy of each document. A copy is
written before the catalogue names it, and removed after the last document that names it, so a kill leaves at most
copies without a document; the next removal removes these too.

All methods block: call them in a thread.
"""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from sleuth.tools.collection.batch_reader import Batch
from sleuth.tools.documents.loading import FORMATS, read_original
from sleuth.tools.errors import DocumentError, StoreError
from sleuth.tools.storage.catalogue import Catalogue, Entry, Stored

_log = logging.getLogger(__name__)

FOLDER = "originals"


class Originals:
    """The copies of the files of one owner."""

    def __init__(self, catalogue: Catalogue, home: Path) -> None:
        self._catalogue = catalogue
        self._home = home
        self._turn = threading.Lock()

    def put(self, batch: Batch, store: Callable[[list[Entry]], Stored]) -> Stored:
        """Copy the files of a batch, then store its entries with the names of the copies.

        A file that can no longer be read is stored without a copy.

        Raises:
            StoreError: a copy cannot be written.
        """
        with self._turn:
            return store([replace(entry, original=self._copy(batch, entry)) for entry in batch.entries])

    def path_of(self, document_id: str) -> Path | None:
        """Return the copy of the file of a document; None if there is none."""
        name = self._catalogue.original(document_id)
        if name is None or not str(name).isalnum():  # a damaged cell must not name another folder
            return None
        path = self._folder / str(name)
        return path if path.is_file() else None

    def delete_unused(self) -> None:
        """Delete the copies that no document of the owner names, and unfinished ones."""
        if not (self._home / FOLDER).is_dir():
            return
        with self._turn:
            used = self._catalogue.originals_in_use()
            for path in self._folder.glob("*"):
                if path.name not in used:
                    path.unlink(missing_ok=True)

    def _copy(self, batch: Batch, entry: Entry) -> str:
        """Write the copy of a file if it is missing; return its name, empty if there is no file."""
        if (file := batch.sources.get(entry.document.id)) is None:
            return ""
        try:
            data = read_original(*file)
        except DocumentError as error:
            _log.warning("no copy of %s is kept: the file %s", entry.document.source, error)
            return ""
        name = sha256(data).hexdigest()
        try:
            _write(self._folder / name, data)
        except OSError as error:
            raise StoreError(
                f"The copy of {entry.document.source} cannot be stored: {error.strerror}. Free some space, or set "
                "SLEUTH_KEEP_ORIGINALS=false, and ingest again."
            ) from error
        return name

    @cached_property
    def _folder(self) -> Path:
        owner = sha256(self._catalogue.owner.encode()).hexdigest()[:16]
        return self._home / FOLDER / self._catalogue.id() / owner


def media_type_of(path: Path) -> str:
    """Return the media type of an original file by its name."""
    suffix = path.suffix.lower()
    known = FORMATS.get(suffix)
    return known[0] if known else guess_type(path.name)[0] or "application/octet-stream"


def _write(path: Path, data: bytes) -> None:
    """Write a file so that it is complete or missing, also after a power failure."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    with draft.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(path)
