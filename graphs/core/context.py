"""Parameters of a run, and objects that it needs and its state cannot hold: settings, budget, model, retriever."""

import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, TypedDict, TypeVar

from langchain_core.callbacks.base import Callbacks
from langgraph.runtime import RunControl
from pydantic import BaseModel, ConfigDict, Field

from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import CallRecord
from sleuth.graphs.core.answer import Note, Threshold, Verdict
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.core.triples import MemoryTriples, TripleStore
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.search import Query, Retriever
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Profile, Tracing
from sleuth.tools.storage.archive import Archive
from sleuth.tools.storage.filters import EXAMPLE
from sleuth.tools.types import content_hash

if TYPE_CHECKING:
    from sleuth.tools.web_pages.page import Page, PageText

A = TypeVar("A")

_QUERY = {field.name for field in fields(Query)}


class KnowledgeGraph(Protocol):
    """A knowledge graph that answers some functions."""

    @property
    def functions(self) -> Sequence[Any]:
        """The functions that it answers."""
        ...

    async def answer(self, function: Any, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - a function, any JSON
        """Return the result of a validated call as plain JSON, None if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class InPaper:
    """Annotation of a setting whose default goes beyond the method's paper: its value under `profile=paper`."""

    value: object


@dataclass(frozen=True, slots=True)
class Ablation:
    """Annotation of a setting that switches off or replaces a part of the method, as its paper's ablation does."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Annotation of the setting whose values are the stages of the method's cumulative ablation, in their order."""


class MethodSettings(BaseModel):
    """Base of the settings of one method; each field is a `--set KEY=VALUE`. Stored runs may have `renamed` names."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    renamed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def annotated(cls, kind: type[A]) -> dict[str, A]:
        """Return the annotations of a type by the names of their settings."""
        fields = cls.model_fields.items()
        return {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, kind)}

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401 - as the base has it
        for name in cls.annotated(Ablation):
            field = cls.model_fields[name]
            field.description = f"{(field.description or '').removesuffix(' (ablation)')} (ablation)"

    def as_in_paper(self) -> Self:
        """Return these settings with everything that goes beyond the paper switched off (profile=paper)."""
        return self.model_copy(update={name: mark.value for name, mark in self.annotated(InPaper).items()})

    def nested(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of other methods that these contain, by the method's name."""
        return {}

    def model_for(self, model: Model, context: "Context") -> Model:
        """Return the model that the method's nodes call: by default that of the run."""
        return model


class SearchSettings(MethodSettings):
    """Settings of a method that searches. A search setting of all methods is a field here, and one of `Query`."""

    def query(self, text: str, **about: object) -> Query:
        """Return a query with the settings that are fields of Query, `top_k` as its `k`; `about` may replace them."""
        values: dict[str, Any] = {"k" if name == "top_k" else name: value for name, value in self}
        return Query(**{"text": text, **{name: values[name] for name in values.keys() & _QUERY}, **about})


class CitedSettings(MethodSettings):
    """Settings of a method whose answers need a citation where that is required."""

    require_citations: Annotated[bool | None, InPaper(False)] = Field(
        default=None,
        description="ours: an answer without a verified citation is asked once more for one, and is then weakly "
        "supported or refused; default: SLEUTH_REQUIRE_CITATIONS",
    )


class CheckedSettings(CitedSettings, SearchSettings):
    """Settings of a method that searches, and whose answers can be checked."""

    check_evidence: Annotated[bool | None, InPaper(False)] = Field(
        default=None,
        description="ours: check how well the cited passages support the answer; default: if asked in English",
    )
    min_support: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="with `check_evidence`: less support than this is refused; default: as fitted, else 0",
    )


def parse_json(value: object) -> object:
    """Return the value of a setting that may come as JSON text.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a run; None means no limit. Tokens are prompt and completion tokens together.

    Calls and tokens count from the run's beginning. Seconds are wall-clock time from its start or latest resume.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class SubrunRequest:
    """A request for a run of another method: the question, the notes to start from, and the budget.

    `plan` has the steps for a method that can start from a given plan, keyed by their number as text. `parent` and
    `checkpoint` are those of the outer run. The sub-run's thread is named after `place`, which is the same after a
    resume and a different one in a fork. `wants_tokens` is called before each model call; None if nobody streams
    replies. `on_step` receives each step as plain JSON: `thread`, `method`, `node`, `state` and `update`. `control` is
    that of the outer run: a drain interrupts both.
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
    on_step: Callable[[dict[str, Any]], None]
    plan: dict[str, Any] = field(default_factory=dict)
    wants_tokens: Callable[[], bool] | None = None
    control: RunControl | None = None


@dataclass(frozen=True, kw_only=True)
class SubrunResult:
    """The result of a sub-run, which stays in its own thread."""

    thread: str
    verdict: Verdict
    notes: dict[str, Note]
    calls: dict[str, CallRecord]
    warnings: list[str]


RunSubrun = Callable[[SubrunRequest], Coroutine[Any, Any, SubrunResult]]
"""Runs another method from the latest checkpoint of its thread to its end."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Dependencies that runs share.

    `embedder` compares texts; `thresholds` are those fitted for the models in use, by prompt; `graph` is the knowledge
    graph of hybrid-rag; `checker` reads the evidence of answers, unless a method's settings switch it off; `home` has
    what a person has trained; `tracing` applies to the runs that sleuth starts, where the callbacks and the parent run
    have no tracer, and `trace_texts` adds texts to OpenTelemetry's spans; `require_citations` is the default of the
    setting of that name; `demo` marks the demo model, whose judgement of a question or an answer is of no use.
    """

    model: Model
    retriever: Retriever
    embedder: Embedder | None = None
    triples: TripleStore = field(default_factory=MemoryTriples)
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    graph: KnowledgeGraph | None = None
    checker: EvidenceChecker | None = None
    home: Path | None = None
    tracing: Tracing = "off"
    trace_texts: bool = False
    require_citations: bool = False
    demo: bool = False

    def context(self, **more: Any) -> "Context":  # noqa: ANN401 - fields of Context
        """Return the context of a run with these services and further fields, which may replace some of them."""
        return Context(**{field.name: getattr(self, field.name) for field in fields(Services)} | more)


@dataclass(frozen=True, kw_only=True)
class Context(Services):
    """Objects that a run needs and its state cannot hold.

    `pages` came with the question, and the retriever searches them; `subruns` runs the methods that another one asks;
    `started` is a monotonic clock reading, in seconds; `token_stream` streams replies on the custom stream while they
    are written.
    """

    archive: Archive
    settings: MethodSettings
    budget: Budget = field(default_factory=Budget)
    pages: "tuple[PageText, ...]" = ()
    subruns: RunSubrun | None = None
    started: float = field(default_factory=time.monotonic)
    token_stream: TokenStream | None = None

    def fingerprint(self) -> str:
        """Return a hash of the settings, on which a run's seeds depend; the check of an answer changes none."""
        of_check = CheckedSettings.model_fields.keys() - SearchSettings.model_fields.keys()
        chosen = self.settings.model_dump_json(exclude={*of_check})
        return content_hash(f"{type(self.settings).__name__}{chosen}")[:16]


DEFAULT_METHOD = "auto"


Calls = Annotated[int | None, Field(description="maximum model calls")]
Tokens = Annotated[int | None, Field(description="maximum tokens")]
Seconds = Annotated[float | None, Field(description="maximum wall-clock seconds from this start")]
Values = Annotated[dict[str, Any], Field(description="settings of the method by name")]
Where = Annotated[str, Field(description=f"search only documents that match; example: {EXAMPLE}")]
ModelName = Annotated[str, Field(description="a model that the model server offers; default: that of the settings")]
Label = Annotated[str, Field(description="what lists of runs show instead of the question")]


class RunParameters(BaseModel):
    """Options of a run. HTTP, MCP and the command line show their descriptions."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    values: Values = {}
    profile: Profile = "default"
    budget: Budget = Budget()
    where: Where = ""
    model: ModelName = ""
    label: Label = ""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters without what a subclass adds to them."""
        return {name: getattr(self, name) for name in RunParameters.model_fields}


class RunOptions(TypedDict, total=False):
    """Options of a new run; all may be omitted."""

    method: str | None
    """A name from `sleuth.METHODS`; by default `auto`, without a model server `reader`."""
    values: dict[str, Any]
    """Settings of the method, such as `{"coarse_k": 5}`."""
    budget: Budget
    """What the run may spend."""
    thread: str | None
    """The thread id, generated if omitted."""
    pages: "Sequence[Page]"
    """Web pages to search instead of the collection; their text is stored with the run."""
    with_collection: bool
    """Search the collection as well as the pages."""
    where: str
    """A filter of the documents that are searched, such as "tag=contract date>=2025-01-01"."""
    label: str
    """What lists of runs show instead of the question."""
    callbacks: Callbacks
    """LangChain callback handlers that receive the nodes, model calls and searches of the run, in addition to those of
    the LangChain run around it."""
