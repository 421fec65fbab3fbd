"""Requests and responses of runs and documents, as in the OpenAPI description."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sleuth.graphs.core.answer import Cost, Status
from sleuth.graphs.core.context import DEFAULT_METHOD, Budget, Calls, Label, ModelName, Seconds, Tokens, Values, Where
from sleuth.graphs.core.method import MODELLESS_METHOD
from sleuth.graphs.persistence.thread import NAME, Outcome, ThreadState
from sleuth.graphs.persistence.threads import MAX_ANSWER, AverageCost
from sleuth.graphs.runs.request import MAX_QUESTION, RunRequest
from sleuth.tools.storage.filters import MAX_CHARS


class Body(BaseModel):
    """A request body or a part of it; null is as if the field were left out."""

    @model_validator(mode="before")
    @classmethod
    def _omit_nulls(cls, body: Any) -> Any:  # noqa: ANN401 - JSON
        return {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body


class Form(Body):
    """A request body; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    """A response body; it has all its fields."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class BudgetForm(Form):
    """The budget of a run; an omitted field means no limit."""

    max_calls: Calls = Field(default=None, ge=1, le=1_000_000)
    max_tokens: Tokens = Field(default=None, ge=1, le=1_000_000_000)
    max_seconds: Seconds = Field(default=None, gt=0, le=1e7, allow_inf_nan=False)

    def budget(self) -> Budget:
        """Return the budget."""
        return Budget(**self.model_dump())


class RunForm(Form):
    """A question for a method."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    method: str | None = Field(
        default=None, description=f"a method; default: {DEFAULT_METHOD}, without a model server {MODELLESS_METHOD}"
    )
    values: Values = {}
    budget: BudgetForm = Field(default_factory=BudgetForm)
    where: Where = Field(default="", max_length=MAX_CHARS)
    model: ModelName = Field(default="", max_length=200)
    label: Label = Field(default="", max_length=200)
    thread: str | None = Field(
        default=None,
        pattern=NAME,
        description="thread id, generated if omitted; for the chat method, continues that conversation",
    )
    after: str | None = Field(
        default=None, pattern=NAME, description="the run whose answer the question follows up on, in a new chat"
    )

    def request(self) -> RunRequest:
        """Return the request for the run, without the answer that it follows up on."""
        return RunRequest(**self.model_dump(exclude={"after", "budget"}), budget=self.budget.budget())


class ResumeForm(Form):
    """Options of a resumed run."""

    budget: BudgetForm | None = Field(default=None, description="replaces the run's budget")
    update: bool = Field(default=False, description="a finished survey asks documents that are new or have changed")
    reply: Any = Field(default=None, description="what the run waits for: a text, or decisions")


class FeedbackForm(Form):
    """The opinion of a person about an answer."""

    rating: Literal["up", "down"] | None = None
    comment: str = Field(default="", max_length=2000)


class TitleForm(Form):
    """The title that a person gives to a run; an empty one shows the question again."""

    title: str = Field(max_length=200)


class ForkForm(Form):
    """A branch of a run."""

    at: str = Field(min_length=1, max_length=100, description="the checkpoint to branch from")
    state: dict[str, Any] = Field(default_factory=dict, description="changed state fields; keyed fields are merged")
    method: str | None = Field(default=None, description="continue with another method and the findings so far")
    name: str | None = Field(default=None, max_length=100, description="give the branch a thread of its own")


class Begun(View):
    """A run that was started in the background, or stopped."""

    thread: str
    state: ThreadState = "running"


class Forked(View):
    """A branch of a run; `resume` runs it."""

    thread: str
    checkpoint: str


class ThreadRow(View):
    """A run in the list."""

    id: str
    owner: str
    method: str
    question: str
    title: str = Field(default="", description="what a person has called the run; empty if nobody has")
    options: dict[str, Any]
    feedback: dict[str, Any] = Field(description="what a person thinks of the answer; empty without feedback")
    state: ThreadState
    problem: str
    parent: str
    parent_checkpoint: str
    created_at: str
    updated_at: str
    part_of: str
    subrun: int = Field(description="number of this sub-run in its outer run, from 1; 0 for any other run")
    outcome: Outcome = Field(description="the state; of a finished run, the status of its answer")
    verdict: Status | None = Field(default=None, description="the status of the answer; null before there is one")
    answer: str | None = Field(default=None, description=f"the first {MAX_ANSWER} characters of the answer")
    weak: bool | None = Field(
        default=None, description="whether the sources support the answer only weakly; null if nothing has checked that"
    )
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = Field(default=None, description="wall-clock seconds of work")


class RunView(View):
    """A run: its row, its answer if it has one, the state of its last checkpoint, its cost."""

    thread: ThreadRow
    answer: dict[str, Any] | None
    state: dict[str, Any]
    cost: Cost
    seconds: float = Field(description="wall-clock seconds of work")


class Span(View):
    """A passage in its document's text, in characters."""

    id: str
    start: int
    end: int


class DocumentView(View):
    """A document with its text; `has_original` is true if a copy of its file is kept."""

    id: str
    title: str
    source: str
    media_type: str
    added_at: str
    author: str | None = None
    date: str | None = None
    language: str | None = None
    tags: list[str] | None = None
    meta: dict[str, str] | None = None
    text: str
    passages: list[Span]
    has_original: bool


class PassageView(View):
    """A passage: the document's text from `start` to `end`."""

    id: str
    document: str
    title: str
    text: str
    start: int
    end: int
    location: str = ""


class HitView(View):
    """A search result."""

    passage: str
    document: str
    title: str
    text: str
    score: float
    rank: int
    location: str = ""


class Taken(View):
    """An accepted upload."""

    ingest: str


class MethodView(View):
    """A method; `average` is the cost of the owner's finished runs, if there are any."""

    name: str
    summary: str
    paper: str
    when: str
    baseline: bool = Field(description="included for comparison")
    calls: str
    average: AverageCost | None = None
    nodes: list[str]
    graph: dict[str, Any] = Field(
        description="nodes from `__start__` to `__end__`; edges with `from`, `to` and whether they are conditional"
    )
    settings: dict[str, Any] = Field(description="JSON schema")


class Health(BaseModel):
    """The status of the server; all other fields need a valid key."""

    status: Literal["ok"] = "ok"
    version: str | None = None
    model: str | None = None
    problem: str | None = Field(default=None, description="why the model server cannot be used")
    running: int | None = Field(default=None, description="active runs")
