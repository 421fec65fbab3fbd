"""A run as it is stored: a thread with its options, its state and the listed answer."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from sleuth.graphs.core.answer import Answer, Status
from sleuth.graphs.core.context import RunParameters
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.tools.checked_data import check_json
from sleuth.tools.errors import UsageError

MAX_METADATA = 16_384
"""Characters of metadata or feedback that a thread stores."""

ThreadState = Literal["queued", "running", "waiting", "stopped", "interrupted", "failed", "done"]
"""The state of a run.

queued: stored, not begun. running: a process holds its lock. waiting: for a person's reply. stopped: by a person.
interrupted: its process was killed, lost or shut down. failed: by an error. done: it has an answer.
"""

UNANSWERED: Final = ("stopped", "failed")
"""The states of a chat whose last turn has no answer, and the statuses of the message that states why."""


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

An interrupted run is stopped. done: a client has created the thread, and no run has begun in it.
"""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The part of a run's answer that is listed.

    `weak`: its sources support it only weakly; None if nothing has checked that.
    """

    verdict: Status
    answer: str
    weak: bool | None = False
    calls: int
    tokens: int
    seconds: float

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return what the list of runs shows of an answer."""
        cost = answer.cost
        tokens = cost["prompt_tokens"] + cost["completion_tokens"]
        return cls(
            verdict=answer.status,
            answer=answer.text,
            weak=None if answer.is_unchecked else answer.is_weak,
            calls=cost["calls"],
            tokens=tokens,
            seconds=answer.seconds,
        )


def outcome_of(state: ThreadState, verdict: Status | None) -> Outcome:
    """Return the outcome of a run in a state, with the status of its answer if it has one."""
    if state == "done":
        return verdict or "done"
    return "stopped" if state == "interrupted" else state


class _Stored(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Turn(_Stored):
    """The input of a chat's turn: a message, or a reply to an interrupt as JSON; `at`: the latest checkpoint before it.

    `start`: the checkpoint at which the turn begins. None if the message continues the conversation. `before`: messages
    that precede it and that no checkpoint has, in the form of LangChain: the question and answer of another run, or
    those of a turn that has ended without an answer. `was` and `problem`: the state of the chat before, which small
    talk does not change. `id`: the id of the message with which the turn begins, also of a reply.
    """

    text: str = ""
    before: list[dict[str, Any]] = []
    was: ThreadState = "done"
    problem: str = ""
    at: str = ""
    start: str | None = Field(default=None, alias="from")
    id: str = ""
    reply: str | None = None


class StoredPages(_Stored):
    """Pages passed with a question, by content hash; `with_collection`: the collection is searched too."""

    texts: list[str] = []
    with_collection: bool = False
    warnings: list[str] = []


class StoredOptions(_Stored, RunParameters):
    """The parameters of a run, its sources, and the next input of a chat.

    `after`: the run that a chat follows up on. They change only under the lock of the thread.
    """

    pages: StoredPages = StoredPages()
    after: str = ""
    turn: Turn | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the options that are not the default ones, in the form in which they are stored."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    def dumps(self) -> str:
        """Return the stored text."""
        return json.dumps(self.to_json())


NAME = rf"^[\w.@:-]{{1,{LONGEST_NAME}}}$"
"""Pattern of a thread's name, which is part of addresses and of other threads' names."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One run: its question and method, the options it was started with, and its state.

    `subrun`: the number of this sub-run in its outer run, from 1; 0 for any other run. `feedback` and `client_metadata`
    are what clients of the server store with it.
    """

    id: str
    owner: str
    method: str
    question: str
    options: StoredOptions = field(default_factory=StoredOptions)
    state: ThreadState = "queued"
    problem: str = ""
    parent: str = ""
    parent_checkpoint: str = ""
    subrun: int = 0
    feedback: dict[str, Any] = field(default_factory=dict)
    client_metadata: dict[str, Any] = field(default_factory=dict)
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
    def title(self) -> str:
        """Return the title that a person has given to the run, or else its label; empty if it has neither."""
        title = self.client_metadata.get("title")
        return title if title and isinstance(title, str) else self.options.label

    @property
    def is_empty(self) -> bool:
        """Return whether a client has created the thread, and no run has begun in it."""
        turn = self.options.turn
        return self.method == "chat" and not self.question and not (turn and turn.text)

    @property
    def part_of(self) -> str:
        """Return the run that this one is a sub-run of; empty for any other run, also for a fork."""
        return self.parent if self.subrun else ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs list` prints."""
        more = {"title": self.title, "part_of": self.part_of, "outcome": self.outcome}
        return {**asdict(self), "options": self.options.to_json(), **more}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run and checkpoint that a thread comes from, and its number as a sub-run of that run; 0 for a fork."""

    parent: str = ""
    parent_checkpoint: str = ""
    subrun: int = 0


def to_stored_json(value: object) -> str:
    """Return JSON in the one form in which equal values are equal texts.

    Raises:
        UsageError: the databases cannot store it, or it is too long.
    """
    check_json(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if len(text) > MAX_METADATA:
        raise UsageError(
            f"A thread stores {MAX_METADATA:,} characters of metadata or feedback, these are {len(text):,}."
        )
    return text
