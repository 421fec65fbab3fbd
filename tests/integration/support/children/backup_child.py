"""Backup and restore in a child process that is killed at one of its accesses to files and databases."""

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sleuth.studio.backup import back_up, restore
from sleuth.tools.settings import Settings

EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.move", "sqlite3.connect")
"""Python's audit events of what can change a file."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A backup or a restore; the process dies at the event of this number."""

    kind: str
    settings: Settings
    file: Path
    die_at: int | None = None


def run(job: Job, pipe: Connection) -> None:
    """Send the number of events at the end."""
    seen = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in EVENTS and not _is_code(arguments):
            seen += 1
            if seen == job.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    if job.kind == "back_up":
        asyncio.run(back_up(job.settings, job.file))
    else:
        asyncio.run(restore(job.settings, job.file, force=True))
    pipe.send(seen)


def _is_code(arguments: tuple[Any, ...]) -> bool:
    return str(arguments[0]).endswith((".py", ".pyc", ".so", "/__pycache__"))
