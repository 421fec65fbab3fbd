"""What the state of every method has in common, and what its nodes are given."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from sleuth.agents.model_calls import CallRecord
from sleuth.graphs.core.answer import Note, Verdict
from sleuth.tools.search.entity_graph import tokenization as spans

SCHEMA_VERSION = 1

V = TypeVar("V")


def same_question(one: str, other: str) -> bool:
    """Return whether two questions have the same words; case, accents and punctuation do not count."""
    return spans.name_key(one) == spans.name_key(other)


def merge(kept: dict[str, V], writes: Sequence[dict[str, V | None]]) -> dict[str, V]:
    """Keyed reducer: later values win, None removes a key, a repeat is harmless.

    Write by write, or a key that was removed and came back would stand in another place when history is replayed.
    """
    merged = dict(kept)
    for write in writes:
        for key, value in write.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
    return merged


def collect(kept: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Appends what is not there yet, in order."""
    return list(dict.fromkeys([*kept, *(item for write in writes for item in write)]))


Keyed: DeltaChannel[dict[str, Any]] = DeltaChannel(merge)
Lines: DeltaChannel[list[str]] = DeltaChannel(collect)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The input of every method."""

    question: str
    """What the person wants to know."""
    notes: Annotated[dict[str, Note], Keyed] = field(default_factory=dict)
    """What is already known, by a key of the method's own; handed over when a run is forked into another method."""

    @property
    def is_settled(self) -> bool:
        """Whether a note answers the whole question; a fork hands over such a note only as a final answer.

        Every other handed-over note answers its own sub-question: the question still has to be searched for.
        """
        return any(
            found["finding"] and same_question(found["question"], self.question) for found in self.notes.values()
        )


@dataclass(frozen=True, kw_only=True)
class RunState(Question):
    """What every method keeps beside its own fields; plain JSON throughout."""

    schema_version: int = SCHEMA_VERSION
    """Version of this layout; older checkpoints are migrated when they are read."""
    calls: Annotated[dict[str, CallRecord], Keyed] = field(default_factory=dict)
    """Every model call so far by its id: role, node, prompt hash, tokens, seconds."""
    warnings: Annotated[list[str], Lines] = field(default_factory=list)
    """What went less than well and how it was dealt with, a line each."""
    halted: bool = False
    """The budget had no room for the next model call."""
    verdict: Verdict | None = None
    """The end of the run: status, text and checked citations."""


class RunUpdate(TypedDict, total=False):
    """What a node of any method may change; None removes a key."""

    notes: dict[str, Note | None]
    calls: dict[str, CallRecord]
    warnings: Sequence[str]
    halted: bool
    verdict: Verdict | None
