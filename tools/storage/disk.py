"""What to do about a disk that refuses a file."""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

_FULL = 16 << 20
"""Free bytes below which a failed write is due to the disk."""

FULL_DISK = (
    "The disk is full. Deleting documents or runs needs some space, too: free some elsewhere, or stop sleuth and "
    "delete the folders `keywords` and `mentions` in SLEUTH_HOME: they are rebuilt once there is space."
)


def remedy_of(file: Path, otherwise: str) -> str:
    """Return what to do about a file that cannot be used; `otherwise` unless descriptors, rights or space lack."""
    try:
        with ExitStack() as opened:
            for _ in range(16):  # an operation of SQLite or tantivy may need several, and its error does not name it
                opened.enter_context(Path(os.devnull).open("rb"))
    except OSError:
        return "This process may open no more files: raise the limit (`ulimit -n`, LimitNOFILE of systemd)."
    folder = next(folder for folder in file.parents if folder.exists())
    if not os.access(folder, os.W_OK):
        return f"{folder} is read-only: SLEUTH_HOME must be a folder that can be written."
    return FULL_DISK if shutil.disk_usage(folder).free < _FULL else otherwise
