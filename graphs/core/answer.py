"""The answer of a run. The state holds these types as plain JSON (TypedDicts); callers receive an `Answer`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.formatting import ReferenceKind

Status = Literal["answered", "refused", "unknown", "invalid_question", "out_of_budget", "waiting"]
"""The five outcomes of a run. `waiting` is none of them: a chat waits for a person's reply."""


class RetrievalPath(TypedDict):
    """The passage, by its id, from which graph search reached another one, and the name that connects them."""

    passage: str
    name: str


class Citation(TypedDict):
    """A verified quote: the document's text has it at `start:end`, in characters.

    Where a method cites more than texts, `kind` is the kind of source and `reference` its location: the cell of a
    table, an evaluated expression, a call to a knowledge graph. A quote from outside the documents has neither a
    passage nor a document, and is at `start:end` of the text of the expression, of the call's result, or of the model's
    reply.

    `why` is present if graph search reached the passage along a name, and not by its own words. `location` is present
    if the passage has a place in its file, such as "p. 12". `changed` is present if the document was updated after
    the answer and lacks the quote. `sentence_ends` is present in an answer of several
    sentences: the ends, in characters of the answer's text, of those it supports.
    """

    passage: str
    document: str
    title: str
    quote: str
    start: int
    end: int
    kind: NotRequired[ReferenceKind]
    reference: NotRequired[str]
    why: NotRequired[RetrievalPath]
    location: NotRequired[str]
    changed: NotRequired[bool]
    sentence_ends: NotRequired[list[int]]


class Note(TypedDict):
    """A finding with its passages; `remark` describes what is unusual, such as a second attempt."""

    question: str
    finding: str
    passages: list[str]
    citations: NotRequired[list[Citation]]
    remark: NotRequired[str]


class NodeCost(TypedDict):
    """Cost of the model calls of one node so far, over all its visits."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float


class Cost(TypedDict):
    """Cost of the model calls of a run so far.

    `cached_tokens` is a part of `prompt_tokens`. `model_seconds` is the sum over calls, also over those in parallel.
    """

    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_seconds: float
    nodes: dict[str, NodeCost]


class Finding(TypedDict):
    """An answer that the evidence checker itself reads in the passages of a run."""

    text: str
    citations: list[Citation]


class Support(TypedDict):
    """Support of an answer by the cited passages, as the evidence checker reads them.

    `score` is the support of the answer, from 0 to 1; `answerable` is the probability that the passages answer the
    question at all. `weak` marks an answer with little support; `also` is another answer, to which the checker gives
    more.
    """

    score: float
    answerable: float
    weak: NotRequired[bool]
    also: NotRequired[Finding]


OWN_CHECKS = ("survey", "report", "chat")
"""The methods that check the parts of their answers, and not the whole."""


class Verdict(TypedDict):
    """The part of the answer that the node `answer` adds to the state; `support` if it was checked.

    `ask_all` is the number of documents if the question is about all of them: a survey is offered.
    """

    status: Status
    text: str
    citations: list[Citation]
    support: NotRequired[Support]
    ask_all: NotRequired[int]


class Threshold(TypedDict):
    """A threshold that a run used, and its origin."""

    value: float
    by: str


class Subrun(TypedDict):
    """The run of one method, in its own thread, on behalf of `auto` or a chat.

    `why` is the reason for choosing this method, `doubt` the reason for rejecting its answer; `confidence` is the
    probability that the answer is supported, None if not measured. `notes` are the keys of its findings. The status of
    a run that has not begun is `queued`.
    """

    method: str
    why: str
    thread: str
    status: Status | Literal["queued"]
    text: str
    citations: list[Citation]
    confidence: float | None
    doubt: str
    notes: list[str]
    cost: Cost
    support: NotRequired[Support]
    ask_all: NotRequired[int]


class Entity(TypedDict):
    """A node of a question's graph."""

    id: str
    name: str


class Relation(TypedDict):
    """An edge of a question's graph between entities, by their ids, with the ids of its passages."""

    subject: str
    predicate: str
    object: str
    passages: list[str]


class Graph(TypedDict):
    """The findings of a run, as entities and relations between them."""

    nodes: list[Entity]
    edges: list[Relation]


_REFUSALS: Mapping[Status, str] = {
    "refused": "What I found does not suffice for an answer.",
    "unknown": "I found no answer.",
    "invalid_question": "The question rests on something that is not so.",
}
"""The text of a run that ends without an answer."""


def refusal_text(status: Status, missing: Sequence[str] = (), *, remark: str = "") -> str:
    """Return the text of a run that ends without an answer; `missing` are the parts of the question left open."""
    text = _REFUSALS.get(status, "") + remark
    return "\n".join([text, "What is missing:", *(f"- {question}" for question in missing)]) if missing else text


def make_verdict(status: Status, text: str, notes: Iterable[Note]) -> Verdict:
    """Return a verdict with the citations of its notes; only an answer has any, also one after the budget ran out."""
    text = text or refusal_text(status)
    cites = text and status in ("answered", "out_of_budget")
    every = [citation for note in notes for citation in note.get("citations", [])] if cites else []
    places = [citation_place(citation) for citation in every]
    unique = [citation for at, citation in enumerate(every) if places[at] not in places[:at]]
    return Verdict(status=status, text=text, citations=unique)


def citation_place(citation: Citation) -> dict[str, object]:
    """Return what makes two citations the same: everything except the path on which the passage was found."""
    return {**citation, "why": None}


def evidence_in(citations: Iterable[Citation]) -> list[Citation]:
    """Return the citations that are evidence; a model's own recollection is none."""
    return [citation for citation in citations if citation.get("kind") != "model"]


def is_weak(status: str, support: Support | None) -> bool:
    """Return whether an answer is accepted although its sources support it only weakly."""
    return status == "answered" and support is not None and support.get("weak", False)


def total_cost(calls: dict[str, Any]) -> Cost:
    """Sum the calls of a run, in total and by node."""
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


def subruns_in(state: Mapping[str, Any]) -> list[Subrun] | None:
    """Return the runs of other methods in a state; None if its method has none."""
    subruns = state.get("hops", {"": state["hop"]} if state.get("hop") else None)
    return None if subruns is None else [*subruns.values()]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a run.

    `seconds` is the wall-clock time that the run worked, without pauses between a stop and a resume. `cost` has the
    model calls, and their summed time.

    `support` is present if the evidence of the answer was checked, also if the check refused it.

    `table` is that of a survey: its columns, figures, and a row for each document, with citations in each cell.

    `ask_all` is present if the question seems to be about all documents: their number, for an offer of a survey.

    `asks` is present while a chat waits for a reply: a question with options to choose from, or a plan to approve.

    `turn` is present in a chat: the id of the message that was answered.
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
    seconds: float = field(default=0.0, compare=False)
    warnings: list[str] = field(default_factory=list)
    graph: Graph | None = None
    threshold: Threshold | None = None
    support: Support | None = None
    hops: list[Subrun] | None = None
    table: dict[str, Any] | None = None
    ask_all: int | None = None
    asks: dict[str, Any] | None = None
    turn: str | None = None

    @property
    def is_weak(self) -> bool:
        """Return whether the sources support the answer only weakly."""
        return is_weak(self.status, self.support)

    @property
    def is_small_talk(self) -> bool:
        """Return whether a chat replied without a run of a method."""
        return self.method == "chat" and self.status == "answered" and self.hops is None

    @property
    def is_unchecked(self) -> bool:
        """Return whether nothing has checked if the sources support the answer."""
        return self.status == "answered" and self.support is None and self.method not in OWN_CHECKS

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command line and the HTTP interface print, without absent values."""
        optional = ("graph", "threshold", "support", "hops", "table", "ask_all", "asks", "turn")
        absent = [name for name in optional if getattr(self, name) is None]
        return {name: value for name, value in asdict(self).items() if name not in absent}


def public_notes(notes: dict[str, Note]) -> list[Note]:
    """Return notes in the form of an answer, without their citations, which are among the answer's."""
    fields = ("question", "finding", "passages", "remark")
    return [Note(**{key: value for key, value in note.items() if key in fields}) for note in notes.values()]  # type: ignore[typeddict-item]
