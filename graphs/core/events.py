"""What a run tells while it goes on."""

from dataclasses import dataclass, field
from typing import Any, Literal

from sleuth.graphs.core.answer import Answer


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something happened in a run: a node started or finished; `update` is what it changed.

    `part_of` is the run whose hop this thread is, if it is one. `task` is the same when a node that was interrupted
    starts again, and of no other visit to it.
    """

    thread: str
    node: str
    state: Literal["started", "finished"]
    update: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    part_of: str = ""
    task: str = ""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """Words of a reply that is being written, which nothing keeps: the node's `Step` has what became of them.

    `call` is the id of the model call, as the state's `calls` have it once it has ended.
    """

    thread: str
    node: str
    role: str
    call: str
    text: str
    method: str = ""
    part_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Reset:
    """Takes back all that was told of a call: it is made again, or its reply cannot be used.

    Where nothing was told of it there is nothing to take back.
    """

    thread: str
    node: str
    role: str
    call: str
    method: str = ""
    part_of: str = ""


Event = Step | Delta | Reset | Answer
"""What a run tells; deltas and resets only to those who listen."""


def parse_event(told: dict[str, Any]) -> Step | Delta | Reset:
    """What was told on a run's stream: each kind has a field that the others lack."""
    kind = Step if "state" in told else Delta if "text" in told else Reset
    return kind(**told)
