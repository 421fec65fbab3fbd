"""The shapes of requests and replies, as the OpenAPI schema shows them."""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sleuth.graphs.core import Budget, Cost
from sleuth.graphs.persistence import NAME, ThreadState, ThreadStatus
from sleuth.graphs.runs import MAX_QUESTION
from sleuth.studio.client import DEFAULT_METHOD

_OLD = "`state` by its old name; the next release drops it"


def _unicode(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses texts that are no Unicode, which cannot be kept: the error is a ValueError."""
    json.dumps(value, ensure_ascii=False).encode()
    return value


class Form(BaseModel):
    """What is sent to us: nothing beside the fields."""

    model_config = ConfigDict(extra="forbid")


class BudgetForm(Form):
    """What a run may spend; what is left out has no limit."""

    max_calls: int | None = Field(default=None, ge=1, le=1_000_000)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000_000)
    max_seconds: float | None = Field(default=None, gt=0, le=1e7, allow_inf_nan=False)

    def budget(self) -> Budget:
        """The same for a run."""
        return Budget(**self.model_dump())


class RunForm(Form):
    """A question for a method."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    method: str = DEFAULT_METHOD
    values: dict[str, Any] = Field(default_factory=dict, description="settings of the method")
    budget: BudgetForm = Field(default_factory=BudgetForm)
    thread: str | None = Field(
        default=None, pattern=NAME, description="a name for the run; one is made up otherwise. That of a chat goes on"
    )
    after: str | None = Field(
        default=None, pattern=NAME, description="a run: the question follows up on its answer, and is understood so"
    )


class ResumeForm(Form):
    """How a run goes on."""

    budget: BudgetForm | None = Field(default=None, description="replaces the run's budget from here on")


class ForkForm(Form):
    """A branch of a run."""

    at: str = Field(min_length=1, max_length=100, description="the checkpoint to branch from")
    state: Annotated[dict[str, Any], AfterValidator(_unicode)] = Field(
        default_factory=dict, description="changed state fields; keyed fields are merged"
    )
    method: str | None = Field(default=None, description="go on with another method and what is known so far")


class Begun(BaseModel):
    """A run that goes on in the background."""

    thread: str
    state: ThreadState = "running"
    status: ThreadStatus = Field(default="running", deprecated=True, description=_OLD)


class Stopped(BaseModel):
    """A run whose work in flight was ended."""

    thread: str
    state: ThreadState = "stopped"
    status: ThreadStatus = Field(default="interrupted", deprecated=True, description=_OLD)


class Forked(BaseModel):
    """A branch that `resume` runs."""

    thread: str
    checkpoint: str


class ThreadRow(BaseModel):
    """A run in the list."""

    id: str
    owner: str
    method: str
    question: str
    options: dict[str, Any]
    state: ThreadState
    status: ThreadStatus = Field(deprecated=True, description=_OLD)
    problem: str
    parent: str
    parent_checkpoint: str
    created_at: str
    updated_at: str
    part_of: str


class FollowUpView(BaseModel):
    """What a run follows up on, what was asked in so many words, and what it cost to understand that."""

    after: str
    asked: str
    cost: Cost
    warnings: list[str]


class RunView(BaseModel):
    """A run as it stands: its row, its answer if it has one, the state of its last checkpoint, what it has cost."""

    thread: ThreadRow
    answer: dict[str, Any] | None
    state: dict[str, Any]
    cost: Cost
    seconds: float | None = Field(description="that it has worked, by the wall clock; null if an older release ran it")
    follow_up: FollowUpView | None = Field(default=None, description="where it was asked `after` another run")


class TurnView(BaseModel):
    """A run in its conversation; `after` is the run that it follows up on, empty for the first."""

    thread: ThreadRow
    after: str
    asked: str
    answer: dict[str, Any] | None


class MomentRow(BaseModel):
    """A checkpoint in a run's history."""

    checkpoint: str
    parent: str
    step: int
    node: list[str]
    next: list[str]
    at: str
    changed: dict[str, Any]
    source: str = Field(description="input; loop: nodes ran; update: a changed state; fork: gone on from once more")


class CallView(BaseModel):
    """A model call as it was."""

    id: str
    node: str
    role: str
    name: str = Field(description="the prompt's name")
    prompt: str = Field(description="the prompt's text")
    reply: str
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    repair: bool


class MomentView(BaseModel):
    """A checkpoint with its whole state and the calls that led to it."""

    checkpoint: str
    parent: str
    values: dict[str, Any]
    calls: list[CallView]


class DocumentRow(BaseModel):
    """A document in the list."""

    id: str
    title: str
    source: str
    media_type: str
    passages: int
    added_at: str


class Span(BaseModel):
    """A passage in its document's text, in characters."""

    id: str
    start: int
    end: int


class DocumentView(BaseModel):
    """A document with its text."""

    id: str
    title: str
    source: str
    media_type: str
    added_at: str
    text: str
    passages: list[Span]


class PassageView(BaseModel):
    """A passage: the document's text from `start` to `end`."""

    id: str
    document: str
    title: str
    text: str
    start: int
    end: int


class HitView(BaseModel):
    """A passage that a search found."""

    passage: str
    document: str
    title: str
    text: str
    score: float
    rank: int


class Taken(BaseModel):
    """An upload that is being read in."""

    ingest: str


class FailureView(BaseModel):
    """A file that could not be read."""

    source: str
    problem: str


class IngestView(BaseModel):
    """How far an upload has been read."""

    id: str
    status: Literal["waiting", "reading", "stopping", "stopped", "done", "failed"]
    files: list[str]
    read: int
    total: int
    failed: list[FailureView]
    done: bool
    at: str


class Edge(BaseModel):
    """What follows a node; where it is conditional, a router chooses."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    to: str
    conditional: bool


class GraphView(BaseModel):
    """A method's state machine, from `__start__` to `__end__`."""

    nodes: list[str]
    edges: list[Edge]


class MethodView(BaseModel):
    """A method to choose."""

    name: str
    summary: str
    paper: str
    when: str
    calls: str
    nodes: list[str]
    graph: GraphView
    settings: dict[str, Any] = Field(description="JSON schema")


class Health(BaseModel):
    """That the server is up; the rest only for those who may ask it."""

    status: Literal["ok"] = "ok"
    version: str | None = None
    model: str | None = None
    problem: str | None = Field(default=None, description="why no model server can be asked")
    running: int | None = Field(default=None, description="runs under way")
