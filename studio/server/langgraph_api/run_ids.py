"""Runs as LangGraph counts them: each piece of a thread's event log, up to an answer, an error or a stop.

The id of a run contains its thread and the number of the event before its first one, so nothing else is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

from sleuth.graphs.persistence import Thread, ThreadState
from sleuth.studio.server.runs.event_log import Event
from sleuth.tools.errors import UnknownName

RunStatus = Literal["pending", "running", "error", "success", "interrupted"]

_STATUS: dict[str, RunStatus] = {"answer": "success", "error": "error", "stopped": "interrupted"}

_WITHOUT_END: dict[ThreadState, RunStatus] = {"done": "success", "waiting": "success", "failed": "error"}
"""The status of a run without a last event: it repeated an answer, or an older release ran it."""

_DIGITS = 8


def run_id_of(thread: str, after: int) -> str:
    """Return the id of the run whose events follow the event `after` of a thread."""
    return f"{str(uuid5(NAMESPACE_OID, thread))[:-_DIGITS]}{after:0{_DIGITS}x}"


def first_event(thread: str, run: str) -> int:
    """Return the number of the event before the first one of a run.

    Raises:
        UnknownName: the run is not one of this thread.
    """
    try:
        after = int(run[-_DIGITS:], 16)
    except ValueError:
        after = -1
    if after < 0 or run_id_of(thread, after) != run:
        raise UnknownName("run", run, [], "`runs.list` returns the runs of a thread.")
    return after


def is_last(event: Event) -> bool:
    """Return whether an event ends a run."""
    return event.name in _STATUS


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: the event before its first one, its events, and its status."""

    id: str
    after: int
    events: tuple[Event, ...]
    status: RunStatus


def read_run(thread: Thread, stored: Sequence[Event], after: int, *, is_active: bool) -> Run:
    """Return the run that begins after an event of a thread."""
    events: list[Event] = []
    for event in stored:
        if event.id > after:
            events.append(event)
            if is_last(event):
                break
    if events and is_last(events[-1]):
        status = _STATUS[events[-1].name]
    else:
        status = "running" if is_active else _WITHOUT_END.get(thread.state, "interrupted")
    return Run(id=run_id_of(thread.id, after), after=after, events=tuple(events), status=status)


def split_runs(thread: Thread, stored: Sequence[Event], *, is_active: bool) -> list[Run]:
    """Return the runs of a thread, the latest first."""
    starts = [0, *(event.id for event in stored if is_last(event))]
    runs = [read_run(thread, stored, after, is_active=is_active) for after in starts]
    return [run for run in reversed(runs) if run.events or run.status == "running"]
