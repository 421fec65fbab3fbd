"""The states and outcomes of runs, and what is listed of their answers."""

from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

from sleuth.graphs.core.answer import Answer, Status

ThreadState = Literal["queued", "running", "waiting", "stopped", "interrupted", "failed", "done"]
"""The state of a run.

queued: stored, not begun. running: a process holds its lock. waiting: for a person's reply. stopped: by a person.
interrupted: its process was killed, lost or shut down. failed: by an error. done: it has an answer.
"""

ThreadStatus = Literal["new", "running", "interrupted", "failed", "done"]
"""The names of states before `ThreadState`. Deprecated."""

OLD_NAMES: Final[dict[ThreadState, ThreadStatus]] = {
    "queued": "new",
    "running": "running",
    "waiting": "done",
    "stopped": "interrupted",
    "interrupted": "interrupted",
    "failed": "failed",
    "done": "done",
}

Outcome = Literal[
    "queued",
    "running",
    "waiting",
    "stopped",
    "failed",
    "done",
    "answered",
    "unknown",
    "refused",
    "invalid_question",
    "out_of_budget",
]
"""The state of a run in one word: of one that is done, the status of its answer.

An interrupted run is stopped. done: an older release ran it, and its answer has not been read since.
"""

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The part of a run's answer that is listed; `weak` if its sources support it only weakly."""

    verdict: Status
    answer: str
    weak: bool = False
    calls: int
    tokens: int
    seconds: float | None

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return what the list of runs shows of an answer."""
        cost = answer.cost
        tokens = cost["prompt_tokens"] + cost["completion_tokens"]
        return cls(
            verdict=answer.status,
            answer=answer.text,
            weak=answer.is_weak,
            calls=cost["calls"],
            tokens=tokens,
            seconds=answer.seconds,
        )


@dataclass(frozen=True, kw_only=True)
class AverageCost:
    """The average cost of finished runs; `seconds` is None if older releases ran all of them."""

    runs: int
    calls: float
    tokens: int
    seconds: float | None


def outcome_of(state: ThreadState, verdict: Status | None) -> Outcome:
    """Return the outcome of a run in a state, with the status of its answer if it has one."""
    if state == "done":
        return verdict or "done"
    return "stopped" if state == "interrupted" else state
