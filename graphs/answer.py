"""What every method ends with. State holds these types as plain JSON (TypedDicts); `Answer` is what callers get."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Status = Literal["answered", "refused", "unknown", "invalid_question", "out_of_budget"]


class Citation(TypedDict):
    """A checked quote: it is really at `start:end` (characters) of the document's text."""

    passage: str
    document: str
    title: str
    quote: str
    start: int
    end: int


class Note(TypedDict):
    """A thing found out, and where it stands; `remark` says what is unusual, such as a second attempt."""

    question: str
    finding: str
    passages: list[str]
    citations: NotRequired[list[Citation]]
    remark: NotRequired[str]


class NodeCost(TypedDict):
    """What one node has cost so far, all its visits together."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


class Cost(TypedDict):
    """What a run has cost so far; `cached_tokens` is a part of `prompt_tokens`, `seconds` sums over model calls."""

    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    nodes: dict[str, NodeCost]


class Verdict(TypedDict):
    """What the `answer` node leaves in the state: the answer without what the rest of the state already holds."""

    status: Status
    text: str
    citations: list[Citation]


class Threshold(TypedDict):
    """A bound that a run decided by, and where it comes from."""

    value: float
    by: str


class Entity(TypedDict):
    """A node of a question's graph."""

    id: str
    name: str


class Relation(TypedDict):
    """An edge of a question's graph between entities, by their ids, and the passages that it stands in."""

    subject: str
    predicate: str
    object: str
    passages: list[str]


class Graph(TypedDict):
    """What a run has found out, as entities and what relates them."""

    nodes: list[Entity]
    edges: list[Relation]


def graph_of(state: dict[str, Any]) -> Graph | None:
    """The graph in a run's state; None where its method makes none, or nothing went into it."""
    if not (state.get("facts") and state.get("entities")):
        return None
    shown = tuple(Relation.__annotations__)
    edges = [Relation(**{key: fact[key] for key in shown}) for fact in state["facts"].values()]  # type: ignore[typeddict-item]
    return Graph(nodes=[Entity(id=id, name=name) for id, name in state["entities"].items()], edges=edges)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The end of a run, or of a piece of it."""

    thread: str
    checkpoint: str
    method: str
    question: str
    status: Status
    text: str
    citations: list[Citation] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    cost: Cost
    warnings: list[str] = field(default_factory=list)
    graph: Graph | None = None
    threshold: Threshold | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON form that the command line and the HTTP interface print; graph and threshold only where they are."""
        absent = [name for name in ("graph", "threshold") if getattr(self, name) is None]
        return {name: value for name, value in asdict(self).items() if name not in absent}
