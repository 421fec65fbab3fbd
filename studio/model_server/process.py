"""The embedded server's process, which outlives its starter, and its state in a file below SLEUTH_HOME (Linux)."""

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_core import to_json

from sleuth.studio.model_server.flags import ServeOptions
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import MODEL_SERVER_STATE

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """The leader of a session: its number, its start in clock ticks since boot, and the boot's id."""

    pid: int
    ticks: int
    boot: str


def identify(pid: int) -> Process:
    """Return the identity of a process that the caller has just started."""
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(pid)
    return Process(pid=pid, ticks=int(stat[19]), boot=BOOT_ID.read_text().strip())


def is_alive(leader: Process) -> bool:
    """Return whether this very process runs; a zombie does not."""
    return leader.pid in session_members(leader)


def session_members(leader: Process) -> list[int]:
    """Return the running processes of the leader's session, also after the leader's death.

    The kernel gives a number away again only when no process has it as its session, so members of a session whose
    leader is gone, or is this leader, are its descendants.
    """
    if not BOOT_ID.is_file() or BOOT_ID.read_text().strip() != leader.boot:
        return []
    found = _stat(leader.pid)
    if found is not None and int(found[19]) != leader.ticks:
        return []
    stats = {int(entry.name): _stat(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit()}
    session = {pid: stat for pid, stat in stats.items() if stat and int(stat[3]) == leader.pid}
    return [pid for pid, stat in session.items() if stat[0] not in "ZX" and int(stat[19]) >= leader.ticks]


async def end_session(leader: Process) -> int:
    """End the leader and its descendants, by SIGTERM if ten seconds suffice; return how many there were."""
    members = left = await asyncio.to_thread(session_members, leader)
    for kind in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 10
        if left:
            with contextlib.suppress(ProcessLookupError):  # gone since we looked
                os.killpg(leader.pid, kind)
        while left := await asyncio.to_thread(session_members, leader):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
    return len(members)


def _stat(pid: int) -> list[str] | None:
    """Return the fields after the name, which may contain spaces: the state, at 3 the session, at 19 the start."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServerState:
    """State that `serve` stores for `status` and `stop`; `started` is in seconds since 1970."""

    process: Process
    options: ServeOptions
    started: float

    @property
    def url(self) -> str:
        """As in SLEUTH_MODEL_URL."""
        return f"http://127.0.0.1:{self.options.port}/v1"


class ServerFiles:
    """Files of the server: its state (absent while stopped), its log since the last start, and the lock of a start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / MODEL_SERVER_STATE
        self.log, self.lock = self.state.with_name("server.log"), self.state.with_name("lock")

    def prepare(self) -> None:
        """Make the folder."""
        folder = self.state.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made ({error.strerror}). Set SLEUTH_HOME elsewhere.") from None

    def read(self) -> ModelServerState | None:
        """Return the stored state; None while stopped."""
        if not self.state.is_file():
            return None
        return TypeAdapter(ModelServerState).validate_json(self.state.read_bytes())

    def write(self, state: ModelServerState) -> None:
        """Write the state atomically."""
        fresh = self.state.with_suffix(".new")
        fresh.write_bytes(to_json(state))
        fresh.replace(self.state)

    def last_lines(self, count: int = 5) -> str:
        """Return the end of the log, which contains the reason if the server died."""
        if not self.log.is_file():
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line[:300] for line in lines if line.strip()][-count:])
