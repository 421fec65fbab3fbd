"""Integrity check of the embedded vector index after an unclean shutdown, in a subprocess.

A damaged index of the embedded Chroma does not raise an error: it crashes the process that reads it. Each user
therefore creates a liveness file; if the owner of one has died, the index is probed before it is opened again.

    python -m sleuth.tools.search.vectors.integrity_probe FOLDER COLLECTION
"""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import numpy as np
from filelock import FileLock

from sleuth.tools.errors import StoreError
from sleuth.tools.search.vectors.chroma import connect
from sleuth.tools.storage import LivenessFile, is_stale

_MARK = "in-use-"
_MOST = 20_000
"""Number of neighbors requested: enough to read most of the index."""


def checked_open(folder: Path, collection: str) -> LivenessFile:
    """Create a liveness file in the folder of the vectors, after a probe if another user has died.

    Raises:
        StoreError: the vectors are corrupt.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "entrance.lock", thread_local=False):  # one probe for all that open the folder
        dead = [mark for mark in folder.glob(f"{_MARK}*") if is_stale(mark)]
        if dead:
            _try(folder, collection)
        for mark in dead:
            mark.unlink(missing_ok=True)
        return LivenessFile(folder / f"{_MARK}{os.getpid()}-{uuid4().hex[:8]}")


def _try(folder: Path, collection: str) -> None:
    command = [sys.executable, "-m", "sleuth.tools.search.vectors.integrity_probe", str(folder), collection]
    status = subprocess.run(command, capture_output=True, check=False).returncode  # noqa: S603 - our own module
    if status < 0:
        raise StoreError(
            f"The vector index in {folder} is corrupt: reading it crashes with signal {-status}. "
            "It is derived from the documents: delete that folder to rebuild it."
        )


def main(folder: str, collection: str) -> None:
    """Read through the index; errors other than crashes are reported when it is opened."""
    from chromadb.errors import NotFoundError

    try:
        found = connect(Path(folder)).get_collection(collection, embedding_function=None)
    except NotFoundError:
        return
    if length := (found.metadata or {}).get("dimension"):
        direction = np.eye(1, int(length), dtype=np.float32)
        found.query(query_embeddings=direction, n_results=min(_MOST, max(1, found.count())), include=[])


if __name__ == "__main__":
    main(*sys.argv[1:])
