"""Events of a run, each with a `kind`."""

from dataclasses import dataclass, field
from typing import Any, Literal

from sleuth.graphs.core.answer import Answer


@dataclass(frozen=True, kw_only=True)
class Step:
    """A node started or finished; `update` is what it changed.

    `part_of` is the outer run if this thread is a sub-run. `task` is the same when a node that was interrupted starts
    again, and different for every other visit to it. `turn` is the id of the message in a chat that the step helps to
    answer; empty for other runs.
    """

    kind: Literal["step"] = "step"
    thread: str
    node: str
    state: Literal["started", "finished"]
    update: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    part_of: str = ""
    task: str = ""
    turn: str = ""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """Tokens of a reply that is being written. They are not stored; the node's `Step` has the result.

    `call` is the id of the model call, as in the state's `calls` once it has ended. `is_answer` is true in the node
    that writes the answer of the run.
    """

    kind: Literal["delta"] = "delta"
    thread: str
    node: str
    role: str
    call: str
    text: str
    is_answer: bool = False
    method: str = ""
    part_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Reset:
    """Revokes the deltas of a call: it is retried, or its reply cannot be used. A call without deltas has nothing to
    revoke.
    """

    kind: Literal["reset"] = "reset"
    thread: str
    node: str
    role: str
    call: str
    is_answer: bool = False
    method: str = ""
    part_of: str = ""


Event = Step | Delta | Reset | Answer
"""An event of a run; deltas and resets only reach subscribers."""

_KINDS: dict[str, type[Step | Delta | Reset]] = {"step": Step, "delta": Delta, "reset": Reset}


def parse_event(item: dict[str, Any]) -> Step | Delta | Reset:
    """Return the event of an item of a run's stream."""
    return _KINDS[item["kind"]](**item)
