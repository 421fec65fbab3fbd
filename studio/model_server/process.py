"""A process that outlives its starter, told apart from any later one that gets the same number (Linux)."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """The leader of a session: its number, its start in clock ticks since boot, and which boot."""

    pid: int
    ticks: int
    boot: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stat:
    pid: int
    running: bool
    session: int
    ticks: int


def identify(pid: int) -> Process:
    """The identity of a process that the caller has just started."""
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(pid)
    return Process(pid=pid, ticks=stat.ticks, boot=BOOT_ID.read_text().strip())


def is_alive(leader: Process) -> bool:
    """True while this very process runs; a zombie does not."""
    return leader.pid in session_members(leader)


def session_members(leader: Process) -> list[int]:
    """The running processes of the leader's session, also after the leader's death.

    The kernel gives a number away again only when no process has it as its session, so members of a session whose
    leader is gone, or is this leader, are its descendants.
    """
    if not BOOT_ID.is_file() or BOOT_ID.read_text().strip() != leader.boot:
        return []
    found = _stat(leader.pid)
    if found is not None and found.ticks != leader.ticks:
        return []
    return [s.pid for s in _all_stats() if s.running and s.session == leader.pid and s.ticks >= leader.ticks]


async def end_session(leader: Process, *, grace: float = 10.0) -> int:
    """Ends the leader and its descendants, politely for `grace` seconds; returns how many there were."""
    members = await asyncio.to_thread(session_members, leader)
    for kind, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        if not await _signal_and_wait(leader, kind, seconds):
            break
    return len(members)


async def _signal_and_wait(leader: Process, kind: signal.Signals, seconds: float) -> bool:
    """True when members are left after `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    if await asyncio.to_thread(session_members, leader):
        with contextlib.suppress(ProcessLookupError):  # gone since we looked
            os.killpg(leader.pid, kind)
    while left := await asyncio.to_thread(session_members, leader):
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.1)
    return bool(left)


def _all_stats() -> Iterator[_Stat]:
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            yield stat


def _stat(pid: int) -> _Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before the bracket may hold spaces
    return _Stat(pid=pid, running=fields[0] not in "ZX", session=int(fields[3]), ticks=int(fields[19]))
