"""One run as its row in the list of runs stores it: options, state, and what is listed of its answer."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from sleuth.graphs.core.answer import Answer, Status
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.tools.settings import Profile

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


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Turn(_Stored):
    """The input of a chat's turn: a message, or a reply to an interrupt as JSON; `at`: the latest checkpoint before it.

    `start`: the checkpoint at which the turn begins. None if the message continues the conversation.
    """

    text: str = ""
    at: str = ""
    start: str | None = Field(default=None, alias="from")
    id: str = ""
    reply: str | None = None


class StoredPages(_Stored):
    """Pages passed with a question, by content hash; `beside`: the collection is searched too."""

    texts: list[str] = []
    beside: bool = False
    warnings: list[str] = []


class FollowUp(_Stored):
    """The run that a run follows up on, the first run of their conversation, and the message as it was typed.

    `cost` and `warnings` are those of rewriting the message into the question of the run.
    """

    after: str
    conversation: str
    asked: str
    cost: dict[str, Any] = {}
    warnings: list[str] = []


class StoredOptions(_Stored):
    """Settings, budget and sources that a run was started with, and values that clients of the server store with it.

    `values`: settings of the method. `hop`: number as a sub-run, 0 for any other run. `where`: filter of the documents.
    """

    values: dict[str, Any] = {}
    profile: Profile = "default"
    budget: Budget = Budget()
    hop: int = 0
    pages: StoredPages = StoredPages()
    where: str = ""
    turn: Turn | None = None
    follow_up: FollowUp | None = None
    feedback: dict[str, Any] = {}
    langgraph_metadata: dict[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the options that were set, in the form in which they are stored."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def dumps(self) -> str:
        """Return the stored text; sub-runs are found by the spacing of `json.dumps`."""
        return json.dumps(self.to_json())


NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""Pattern of a thread's name, which is part of addresses and of other threads' names."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and its state."""

    id: str
    owner: str
    method: str
    question: str
    options: StoredOptions = field(default_factory=StoredOptions)
    state: ThreadState = "queued"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    created_at: str = ""
    updated_at: str = ""
    verdict: Status | None = None
    answer: str | None = None
    weak: bool | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    @property
    def outcome(self) -> Outcome:
        """Return the state, of an interrupted run `stopped`, of a finished one the status of its answer."""
        return outcome_of(self.state, self.verdict)

    @property
    def status(self) -> ThreadStatus:
        """Return the state by its old name. Deprecated: use `state`."""
        return OLD_NAMES[self.state]

    @property
    def part_of(self) -> str:
        """Return the run that this one is a sub-run of; empty for any other run, also for a fork."""
        return self.parent if self.hop else ""

    @property
    def hop(self) -> int:
        """Return the number of this sub-run in its outer run, from 1; 0 for any other run."""
        return self.options.hop

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs list` prints."""
        more = {"status": self.status, "part_of": self.part_of, "outcome": self.outcome}
        return {**asdict(self), "options": self.options.to_json(), **more}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and its number as a sub-run of that run; 0 for a fork."""

    parent: str
    checkpoint: str
    hop: int = 0
