"""Fields that the states of all methods share, their reducers, and routers that several methods share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from langgraph.channels import DeltaChannel
from typing_extensions import is_typeddict

from sleuth.agents.model_calls.caller import CallRecord
from sleuth.graphs.core.answer import Note, Verdict
from sleuth.tools.text.tokenization import name_key

SCHEMA_VERSION = 1

V = TypeVar("V")


def same_question(one: str, other: str) -> bool:
    """Return whether two questions have the same words; case, accents and punctuation do not count."""
    return name_key(one) == name_key(other)


def beginning_of(question: str) -> str:
    """Return the part of a question that rules read; a longer text is a document."""
    return question[:500]


def merge_keys(values: dict[str, V], writes: Sequence[dict[str, V | None]]) -> dict[str, V]:
    """Keyed reducer: later values win, None removes a key, a repeat is harmless.

    Writes are applied one by one; otherwise a key that was removed and came back would change its position in a replay.
    """
    merged = dict(values)
    for write in writes:
        for key, value in write.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
    return merged


def append_new(items: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Append the items that are not in the list yet, in order."""
    return list(dict.fromkeys([*items, *(item for write in writes for item in write)]))


PassageRef = Annotated[str, "archive reference of a passage"]
"""Type of the references in a state's fields; `Call.passages` returns their passages."""


def contains(kind: Any, part: Any) -> bool:  # noqa: ANN401 - any type
    """Return whether a type is another one, or has it among its arguments or, as a TypedDict, its fields."""
    parts = get_type_hints(kind, include_extras=True).values() if is_typeddict(kind) else get_args(kind)
    return kind == part or any(contains(inner, part) for inner in parts)


def find_hashes(value: object) -> set[str]:
    """Return the archive references (SHA-256 in hexadecimal) anywhere in a state."""
    if isinstance(value, str):
        return {value} if len(value) == 64 and set(value) <= set("0123456789abcdef") else set()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return {name for part in parts for name in find_hashes(part)}


@dataclass(frozen=True)
class KeysOf:
    """Annotation of a state field, or of a part of one: its keys or items are keys of another field.

    >>> wave: Annotated[list[str], KeysOf("plan")]
    """

    field: str


Keyed: DeltaChannel[dict[str, Any]] = DeltaChannel(merge_keys)
Lines: DeltaChannel[list[str]] = DeltaChannel(append_new)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The input of every method."""

    question: str
    """The question of the person."""
    notes: Annotated[dict[str, Note], Keyed] = field(default_factory=dict)
    """Known findings, by a key of the method's own; a fork into another method inherits those of sub-questions."""


@dataclass(frozen=True, kw_only=True)
class RunState(Question):
    """Fields of every method's state; plain JSON throughout."""

    schema_version: int = SCHEMA_VERSION
    """Version of this layout; older checkpoints are migrated when they are read."""
    calls: Annotated[dict[str, CallRecord], Keyed] = field(default_factory=dict)
    """Every model call so far by its id: role, node, prompt hash, tokens, seconds."""
    warnings: Annotated[list[str], Lines] = field(default_factory=list)
    """Problems and how they were handled, a line each."""
    searches: Annotated[list[str], Lines] = field(default_factory=list)
    """Archive references of all searches: query, mode, and the passages with their scores and paths."""
    halted: bool = False
    """The budget had no room for the next model call."""
    verdict: Verdict | None = None
    """The end of the run: status, text and checked citations."""

    def spending(self) -> tuple[int, int]:
        """Return the model calls and the tokens of the run so far."""
        return len(self.calls), sum(call["prompt_tokens"] + call["completion_tokens"] for call in self.calls.values())


@dataclass(frozen=True, kw_only=True)
class SharesBudget:
    """Fields of the input of a node that is sent several times in parallel; a base before the state of the run."""

    sharing: int = 1
    """Nodes that run in parallel and share the budget."""
    spent: tuple[int, int] = (0, 0)
    """Model calls and tokens of the run before them."""

    def spending(self) -> tuple[int, int]:
        """Return the model calls and tokens of the run so far."""
        return self.spent


Update = dict[str, Any]
"""The fields of the state that a node changes; in a field that is keyed, None removes a key."""
