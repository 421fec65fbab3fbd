"""The mark of a restore in progress: a home whose data is half replaced must not be used."""

from pathlib import Path

from sleuth.tools.errors import StoreError

RESTORING = "restore-unfinished"
"""File in SLEUTH_HOME that exists while a restore replaces the data."""


def require_restored(home: Path) -> None:
    """Check that no restore was interrupted while it replaced the data of a home.

    Raises:
        StoreError: one was; it has to be repeated.
    """
    if (home / RESTORING).exists():
        raise StoreError(
            f"A restore of {home} is in progress or was interrupted, so its data is incomplete. "
            "Run `sleuth restore FILE` again."
        )
