"""Run questions in child processes, and kill them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import run_child
from preloaded import child
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
    checkpoints: Sequence[int] = ()
    seconds: float = 0.0


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
