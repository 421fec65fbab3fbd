"""The remedy for a full disk."""

import shutil
from pathlib import Path

_FULL = 16 << 20
"""Free bytes below which a failed write is due to the disk."""

FULL_DISK = (
    "The disk is full. Deleting documents or runs needs some space, too: free some elsewhere, or stop sleuth and "
    "delete the folders `keywords` and `mentions` in SLEUTH_HOME: they are rebuilt once there is space."
)


def write_remedy(place: Path, otherwise: str) -> str:
    """Return what to do about a failed write: free space if the disk of an existing place is full, else `otherwise`."""
    return FULL_DISK if shutil.disk_usage(place).free < _FULL else otherwise
