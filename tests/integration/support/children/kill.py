"""Run questions in child processes, kill them, and compare the answers and requests of the resumed runs."""

import asyncio
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import run_child
from preloaded import child
from recording_proxy import Proxy
from run_child import Job
from sqlalchemy import bindparam, text

from sleuth.graphs.persistence.store import runs_url
from sleuth.graphs.persistence.tables import CHECKPOINT_TABLES
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import open_engine

SECONDS = 240.0
"""Longest wait for a child; a real model answers in that time also on a busy machine."""


@dataclass(frozen=True)
class Ended:
    """Output of a child before its end; no answer if it was killed."""

    answer: dict[str, Any] | None
    commits: int = 0
    checkpoints: tuple[int, ...] = ()
    seconds: float = 0.0


@dataclass
class Tally:
    """Counts of a sweep: kills of a running child, late kills, repeated calls and their maximum."""

    kills: int = 0
    repeated: int = 0
    most_repeated: int = 0
    late: int = 0


def _receive(pipe: Connection) -> Any:
    """Return the next message of a child; None after its end."""
    try:
        if not pipe.poll(SECONDS):
            raise TimeoutError(f"a child sent nothing for {SECONDS} s")
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        return None


def _run(job: Job, kill_after: float | None) -> Ended:
    with child(run_child.run, job) as (process, pipe):
        assert _receive(pipe) in ("running", None)
        started = time.monotonic()
        if kill_after is not None and not pipe.poll(kill_after):
            process.kill()
        result = _receive(pipe)
        seconds = time.monotonic() - started
        process.join()
    return Ended(**result, seconds=seconds) if result else Ended(None)


async def run(job: Job, *, kill_after: float | None = None) -> Ended:
    """Run a child to its end, or kill it a number of seconds after its start."""
    return await asyncio.to_thread(_run, job, kill_after)


def committed(settings: Settings, calls: set[str]) -> set[str]:
    """Those of the calls whose results are in the store, in whatever thread: a call's task has its id.

    An error is no result: its call may be made again.
    """
    engine = open_engine(runs_url(settings))
    table = CHECKPOINT_TABLES[engine.dialect.name][1]
    rows = text(f"SELECT DISTINCT task_id FROM {table} WHERE channel = '__return__' AND task_id IN :calls")
    with engine.connect() as connection:
        given = rows.bindparams(bindparam("calls", expanding=True))
        found = {str(id) for (id,) in connection.execute(given, {"calls": sorted(calls)})}
    engine.dispose()
    return found


def essence(answer: dict[str, Any] | None) -> dict[str, Any]:
    """An answer without what differs between equal runs: its thread, its checkpoint, its seconds."""
    assert answer is not None, "the child ended without an answer"
    cost = {name: answer["cost"][name] for name in ("calls", "prompt_tokens", "completion_tokens")}
    nodes = {name: node["calls"] for name, node in answer["cost"]["nodes"].items()}
    kept = ("method", "question", "status", "text", "citations", "notes", "warnings")
    return {name: answer[name] for name in kept} | {"cost": cost, "nodes": nodes}


async def kill_and_resume(
    job: Job, proxy: Proxy, expected: dict[str, Any], tally: Tally, *, kill_after: float | None = None
) -> Ended:
    """Kill one run, resume it in a new process, and check its answer and repeated requests.

    Gives what became of the run that was to be killed: an answer, if the kill came too late.
    """
    start = len(proxy.calls)
    killed = await run(job, kill_after=kill_after)
    await proxy.settle()
    if killed.answer is not None:
        tally.late += 1
        assert essence(killed.answer) == expected
        return killed
    before = set(proxy.ids(start))
    done = committed(job.settings, before)
    middle = len(proxy.calls)
    resumed = await run(replace(job, die_after=None))
    found = essence(resumed.answer)
    assert found == expected, f"another answer after a resume: {found} instead of {expected}"
    after = proxy.ids(middle)
    assert not done & set(after), "a call that had completed was sent again"
    assert len(after) == len(set(after)), f"a call was sent twice by one process: {after}"
    repeated = len(before & set(after))
    tally.kills += 1
    tally.repeated += repeated
    tally.most_repeated = max(tally.most_repeated, repeated)
    return killed
