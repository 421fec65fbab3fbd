"""What a run needs and its state must not contain: settings, budget, model, retriever."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from sleuth.agents.graph_encoder import GraphModels
from sleuth.agents.llm import TokenStream
from sleuth.agents.model import Model
from sleuth.agents.model_calls import CallRecord
from sleuth.graphs.core.answer import Note, Threshold, Verdict
from sleuth.tools.search import Retriever
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Tracing
from sleuth.tools.sources.knowledge_graph import KnowledgeGraph
from sleuth.tools.sources.question_attributes import Predictor
from sleuth.tools.sources.web_pages import PageText
from sleuth.tools.storage import Archive, MemoryTriples, TripleStore
from sleuth.tools.types import content_hash


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
    hearing: TokenStream | None = None
    tracing: Tracing = "off"

    def fingerprint(self) -> str:
        """Names the settings that a run's seeds depend on."""
        return content_hash(f"{type(self.settings).__name__}{self.settings.model_dump_json()}")[:16]
