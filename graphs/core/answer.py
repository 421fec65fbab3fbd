"""What every method ends with. State holds these types as plain JSON (TypedDicts); `Answer` is what callers get."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Status = Literal["answered", "refused", "unknown", "invalid_question", "out_of_budget", "waiting"]
"""The five outcomes of a run; `waiting` is none yet: a chat waits for a person's reply."""


CitationKind = Literal["text", "table", "expression", "graph", "model", "note"]


class RetrievalPath(TypedDict):
    """How graph search came to a passage: from another one, by its id, along a name."""

    passage: str
    name: str


class Citation(TypedDict):
    """A checked quote: it is really at `start:end` (characters) of the document's text.

    Where a method cites more than texts, `kind` says what is cited and `reference` where: the cell of a table, an
    expression that was worked out, a call to a knowledge graph. What stands in no document has neither a passage nor a
    document, and its quote is at `start:end` of what the expression, the call or the model gave.

    `why` is there where the passage was found along a name rather than by its own words.
    """

    passage: str
    document: str
    title: str
    quote: str
    start: int
    end: int
    kind: NotRequired[CitationKind]
    reference: NotRequired[str]
    why: NotRequired[RetrievalPath]


class Note(TypedDict):
    """A thing found out, and where it stands; `remark` says what is unusual, such as a second attempt."""

    question: str
    finding: str
    passages: list[str]
    citations: NotRequired[list[Citation]]
    remark: NotRequired[str]


class NodeCost(TypedDict):
    """What the model calls of one node have cost so far, all its visits together."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float


class Cost(TypedDict):
    """What the model calls of a run have cost so far.

    `cached_tokens` is a part of `prompt_tokens`. `model_seconds` is the sum over calls, also over those in parallel.
    """

    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_seconds: float
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


class Subrun(TypedDict):
    """One method's turn at a question that `auto` was asked, in a thread of its own.

    `why` is why it was this method's turn, `doubt` why its answer was not accepted; `confidence` is the probability
    that the answer is supported, None where that was not asked. `notes` are the keys of what it found out. The status
    of one that has not begun is new in a state, and queued in an answer.
    """

    method: str
    why: str
    thread: str
    status: Status | Literal["new"]
    text: str
    citations: list[Citation]
    confidence: float | None
    doubt: str
    notes: list[str]
    cost: Cost


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


def total_cost(calls: dict[str, Any]) -> Cost:
    """Sums the calls of a run, in all and by node."""
    cost = Cost(calls=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0, model_seconds=0.0, nodes={})
    for call in calls.values():
        fresh = NodeCost(calls=0, prompt_tokens=0, completion_tokens=0, model_seconds=0.0)
        node = cost["nodes"].setdefault(call["node"], fresh)
        cost["cached_tokens"] += call["cached_tokens"]
        for part in (cost, node):
            part["calls"] += 1
            part["prompt_tokens"] += call["prompt_tokens"]
            part["completion_tokens"] += call["completion_tokens"]
            total = part["model_seconds"] + call["seconds"]
            part["model_seconds"] = round(total, 4)  # as each call is: the same in any order
    return cost


def upgrade_cost(kept: dict[str, Any]) -> Cost:
    """Return a cost that was stored; an older release called its `model_seconds` `seconds`."""
    renamed = {"model_seconds" if name == "seconds" else name: value for name, value in kept.items()}
    nodes = {name: upgrade_cost(node) for name, node in kept.get("nodes", {}).items()}
    return Cost(**{**renamed, **({"nodes": nodes} if "nodes" in kept else {})})  # type: ignore[typeddict-item]  # as it was stored


def public_subrun(kept: Subrun) -> Subrun:
    """Return a run of another method as an answer shows it: one that has not begun is queued."""
    status: Any = "queued" if kept["status"] == "new" else kept["status"]
    return {**kept, "status": status, "cost": upgrade_cost({**kept["cost"]})}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The end of a run, or of a piece of it.

    `seconds` is the wall-clock time that the run worked, without pauses between a stop and a resume; it is not there
    for runs of older releases. `cost` has the model calls, and their summed time.

    `asks` is there where a chat waits for a reply: a question with options to choose from, or a plan to approve.
    """

    thread: str
    checkpoint: str
    method: str
    question: str
    status: Status
    text: str
    citations: list[Citation] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    cost: Cost
    seconds: float | None = field(default=None, compare=False)
    warnings: list[str] = field(default_factory=list)
    graph: Graph | None = None
    threshold: Threshold | None = None
    hops: list[Subrun] | None = None
    asks: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON form that the command line and the HTTP interface print, without fields that have no value."""
        absent = [name for name in ("seconds", "graph", "threshold", "hops", "asks") if getattr(self, name) is None]
        return {name: value for name, value in asdict(self).items() if name not in absent}


def public_notes(notes: dict[str, Note]) -> list[Note]:
    """Notes as an answer shows them; their citations are among the answer's."""
    shown = ("question", "finding", "passages", "remark")
    return [Note(**{key: value for key, value in note.items() if key in shown}) for note in notes.values()]  # type: ignore[typeddict-item]
