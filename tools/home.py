"""A SLEUTH_HOME: its lock and its databases, which documents and runs share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from sqlalchemy import URL, Engine

from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import open_engine
from sleuth.tools.storage.locks import HomeLock, LockMode

RESTORING = "restore-unfinished"
"""File in SLEUTH_HOME that exists while a restore replaces the data: half replaced, it must not be used."""


class Home:
    """A home as one process uses it: its lock, and one engine for each database, which is a file or in Postgres."""

    def __init__(self, settings: Settings, command: str = "sleuth") -> None:
        """Set the folder, and the name of this process in the messages of others."""
        self.lock, self._folder = HomeLock(settings.home, command), settings.home
        self._engines: dict[str | URL, Engine] = {}

    def engine(self, url: str | URL) -> Engine:
        """Return the engine of a database; raise StoreError if the home cannot be created or is half restored."""
        if url not in self._engines:
            make_folder(self._folder, "SLEUTH_HOME")
            require_restored(self._folder)
            self._engines[url] = open_engine(url)
        return self._engines[url]


@asynccontextmanager
async def open_home(settings: Settings, mode: LockMode | None, *, command: str = "sleuth") -> AsyncIterator[Home]:
    """Hold a home in a `mode`, if there is one, as the process `command`; raise StoreBusy if another process does."""
    home = Home(settings, command)
    async with home.lock.hold(mode, wait=settings.wait) if mode else nullcontext():
        yield home


def make_folder(folder: Path, setting: str) -> None:
    """Create a missing folder; raise StoreError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{setting} ({folder}) cannot be created: {error}. Set it to another folder.") from error


def require_restored(home: Path) -> None:
    """Raise StoreError if a restore was interrupted while it replaced the data of a home: it has to be repeated."""
    if (home / RESTORING).exists():
        raise StoreError(
            f"A restore of {home} is in progress or was interrupted, so its data is incomplete. "
            "Run `sleuth restore FILE` again."
        )
