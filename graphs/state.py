"""What the state of every method has in common, and what its nodes are given."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeVar

from langgraph.channels import DeltaChannel
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from sleuth.agents.desk import CallRecord, Desk
from sleuth.agents.graph_llm.model import GraphModels
from sleuth.agents.model import Model
from sleuth.agents.role import I, O, Role
from sleuth.agents.words import Hearing
from sleuth.graphs.answer import Note, Threshold, Verdict
from sleuth.tools.archive import Archive
from sleuth.tools.attributes import Predictor
from sleuth.tools.documents import content_hash
from sleuth.tools.embedder import Embedder
from sleuth.tools.errors import BadReply
from sleuth.tools.knowledge_graph.lookups import KnowledgeGraph
from sleuth.tools.mention_graph import spans
from sleuth.tools.pages.page import PageText
from sleuth.tools.retriever import Retriever
from sleuth.tools.settings import Tracing
from sleuth.tools.triples import MemoryTriples, TripleStore

SCHEMA_VERSION = 1

V = TypeVar("V")


def same_question(one: str, other: str) -> bool:
    """Return whether two questions have the same words; case, accents and punctuation do not count."""
    return spans.key(one) == spans.key(other)


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


class MethodSettings(BaseModel):
    """Base of the settings of one method; each field is a `--set KEY=VALUE`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def as_in_paper(self) -> "MethodSettings":
        """These settings with everything that goes beyond the paper switched off (profile=paper)."""
        return self

    def nested(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of other methods that these contain, by the method's name."""
        return {}

    def model_for(self, model: Model, context: "Context") -> Model:
        """Return the model that the method's nodes ask: by default that of the run."""
        return model


def from_json(value: object) -> object:
    """What a setting that is more than a word means, where it comes as text; raises ValueError."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None


S = TypeVar("S", bound=MethodSettings)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may spend; None means no limit. Tokens are prompt and completion tokens together.

    Calls and tokens count from the run's beginning. Seconds are wall-clock time from its start or latest resume.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class HopInput:
    """A run within a run: which method is to answer the question, from which notes, within which budget.

    `plan` has the steps of PAR-RAG where it is not to plan them itself, keyed by their number as text.
    `parent` and `checkpoint` are those of the outer run. The hop's thread is named after `place`, which is the same
    after a resume and another one in a fork.
    """

    number: int
    method: str
    question: str
    notes: dict[str, Note]
    values: dict[str, Any]
    budget: Budget
    parent: str
    checkpoint: str
    place: str
    plan: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HopEnd:
    """What a run within a run has left behind, in its own thread."""

    thread: str
    verdict: Verdict
    notes: dict[str, Note]
    calls: dict[str, CallRecord]
    warnings: list[str]


Tell = Callable[[dict[str, Any]], None]
"""Takes a step of a hop: `thread`, `method`, `node`, `state` and `update`, as plain JSON."""


class Hops(Protocol):
    """Runs methods in threads of their own, for a method that leaves the work to others."""

    async def run(self, hop: HopInput, tell: Tell) -> HopEnd:
        """A hop from wherever its thread stands to its end; its steps are told as they happen."""
        ...


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a run needs and its state must not hold.

    `embedder` is for comparing texts; `thresholds` are those that were fitted for the models in use, by prompt; `pages`
    came with the question, and the retriever searches them; `hops` are for the method `auto`; `graph` is asked, and
    `predictor` tells a question's attributes, in hybrid-rag; `graph_models` are those that RAS may be set to; `started`
    is a monotonic clock reading, in seconds; `hearing` has replies told on the custom stream while they are written;
    `tracing` applies where the callbacks and the parent run have no tracer.
    """

    model: Model
    retriever: Retriever
    archive: Archive
    settings: MethodSettings
    budget: Budget = field(default_factory=Budget)
    embedder: Embedder | None = None
    triples: TripleStore = field(default_factory=MemoryTriples)
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    pages: tuple[PageText, ...] = ()
    hops: Hops | None = None
    graph: KnowledgeGraph | None = None
    predictor: Predictor | None = None
    graph_models: GraphModels = field(default_factory=GraphModels)
    started: float = field(default_factory=time.monotonic)
    hearing: Hearing | None = None
    tracing: Tracing = "off"

    def fingerprint(self) -> str:
        """Names the settings that a run's seeds depend on."""
        return content_hash(f"{type(self.settings).__name__}{self.settings.model_dump_json()}")[:16]


def desk(state: RunState, runtime: Runtime[Context], *, spare: int = 0, sharing: int = 1) -> Desk:
    """The model calls of one execution of a node: seeded by question and settings, never by the thread.

    Of the budget's calls `spare` are left alone, and nodes that run side by side share the rest.
    """
    context = runtime.context
    left = remaining(state, runtime).max_calls
    limit = None if left is None else (left - spare) // sharing
    seed = f"{state.question}\n{context.fingerprint()}"
    return Desk(context.model, context.archive, seed=seed, limit=limit, hearing=context.hearing)


async def ask_or(desk: Desk, role: Role[I, O], given: I, otherwise: O, loss: str) -> O:
    """Asks; where no reply can be understood, goes on with `otherwise` and a warning that says what is lost."""
    try:
        return await desk.ask(role, given)
    except BadReply as error:
        desk.warn(f"{error} {loss}")
        return otherwise


def settings_of(runtime: Runtime[Context], kind: type[S]) -> S:
    """The settings of the method that is running."""
    settings = runtime.context.settings
    assert isinstance(settings, kind)
    return settings


def affordable(state: RunState, runtime: Runtime[Context], calls: int = 1) -> bool:
    """Whether the budget has room for so many further calls."""
    left = remaining(state, runtime)
    return (
        (left.max_calls is None or calls <= left.max_calls)
        and (left.max_tokens is None or left.max_tokens > 0)
        and (left.max_seconds is None or left.max_seconds > 0)
    )


def remaining(state: RunState, runtime: Runtime[Context]) -> Budget:
    """What is left of the budget; less than nothing where a limit was passed."""
    budget = runtime.context.budget
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in state.calls.values())
    seconds = time.monotonic() - runtime.context.started
    return Budget(
        max_calls=None if budget.max_calls is None else budget.max_calls - len(state.calls),
        max_tokens=None if budget.max_tokens is None else budget.max_tokens - tokens,
        max_seconds=None if budget.max_seconds is None else budget.max_seconds - seconds,
    )
