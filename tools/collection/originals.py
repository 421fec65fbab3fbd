"""Copies of ingested files, so that a citation can be shown in the file itself.

They are below SLEUTH_HOME, by catalogue, owner and content. The catalogue names the copy of each document. A copy is
written before the catalogue names it, and removed after the last document that names it, so a kill leaves at most
copies without a document; the next removal removes these too.

All methods block: call them in a thread.
"""

import os
import threading
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from sleuth.tools.storage.catalogue import Catalogue

FOLDER = "originals"


class Originals:
    """The copies of the files of one owner.

    Attributes:
        lock: excludes the removal of copies until the catalogue names new ones.
    """

    def __init__(self, catalogue: Catalogue, home: Path) -> None:
        self._catalogue = catalogue
        self._home = home
        self.lock = threading.Lock()

    def add(self, data: bytes) -> str:
        """Write the copy of a file if it is missing, and return its name; the caller holds `lock`.

        Raises:
            OSError: it cannot be written.
        """
        name = sha256(data).hexdigest()
        _write(self._folder / name, data)
        return name

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
        with self.lock:
            used = self._catalogue.originals_in_use()
            for path in self._folder.glob("*"):
                if path.name not in used:
                    path.unlink(missing_ok=True)

    @cached_property
    def _folder(self) -> Path:
        owner = sha256(self._catalogue.owner.encode()).hexdigest()[:16]
        return self._home / FOLDER / self._catalogue.id() / owner


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
