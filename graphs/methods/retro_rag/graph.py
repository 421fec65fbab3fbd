"""RetroRAG: evidence is collated, reasoned from and taken back, until an answer agrees with itself (Xiao et al., 2025).

    retrieve -> collate -> answer -> verify -> (discover -> plan -> retrieve ...)*

Source evidence is passages, scored anew in each round; inferential evidence is what follows from them. Both are short
lists: what no longer helps leaves, and `departures` says when and why.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import judging, reasoning
from sleuth.graphs.core import (
    Call,
    Context,
    Keyed,
    Method,
    MethodSettings,
    Note,
    Question,
    RunState,
    RunUpdate,
    Threshold,
    ask_or,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import (
    answered,
    as_query,
    cited,
    clean,
    conclude,
    find,
    known_steps,
    load,
    outcomes,
    sources,
)
from sleuth.graphs.methods.retro_rag import evidence_state as casebook
from sleuth.graphs.methods.retro_rag import scoring as inquiry
from sleuth.graphs.methods.retro_rag.evidence_state import Attempt, Departure, Piece, inferences, ranked
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


class Settings(MethodSettings):
    """What can be set with `--set`; what is marked "ours" goes beyond the paper and is off under `profile=paper`."""

    max_iterations: int = Field(default=5, ge=1, le=20, description="rounds of searching and answering")
    top_k: int = Field(default=5, ge=1, le=50, description="passages found in a round")
    mode: Mode = Field(default="graph", description="how to search (paper: hybrid)")
    max_sources: int = Field(default=5, ge=1, le=50, description="passages kept as source evidence (N)")
    max_inferences: int = Field(default=5, ge=1, le=50, description="inferences kept (K)")
    threshold: float | None = Field(default=None, ge=0, le=1, description="consistency that suffices (fitted, or 0.7)")
    orphans: Literal["test", "drop", "keep"] = Field(
        default="test", description="ours: inferences whose passages left are tested again, or go (paper: keep)"
    )
    evaluate_answer: bool = Field(default=True, description="off: no answer is final before the last round (ablation)")
    evidence: bool = Field(default=True, description="off: answers from memory (ablation)")
    source_evidence: bool = Field(default=True, description="off: answers from inferences alone (ablation)")
    inferential_evidence: bool = Field(default=True, description="off: answers from passages alone (ablation)")
    update: bool = Field(default=True, description="off: each round's evidence replaces that of the last (ablation)")
    evaluate_evidence: bool = Field(default=True, description="off: the newest is kept, nothing tested (ablation)")

    def as_in_paper(self) -> "Settings":
        """Search by words and vectors; an inference stays as long as it scores, whatever becomes of its passages."""
        return self.model_copy(update={"mode": "hybrid", "orphans": "keep"})


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Inferences are notes (see casebook.py): where one is held, its passages are known."""

    round: int = 0
    """How often has been searched; an answer before the first search comes from the one that was handed over."""
    query: str = ""
    """What the last plan wants to know; empty while that is the question itself."""
    found: list[str] = field(default_factory=list)
    """Passages found in this round, by archive reference."""
    sources: Annotated[dict[str, Piece], Keyed] = field(default_factory=dict)
    """The source evidence, by passage."""
    departures: Annotated[dict[str, Departure], Keyed] = field(default_factory=dict)
    """What left the evidence, when and why, by round and passage or inference."""
    entities: list[str] = field(default_factory=list)
    """What the question turns on, named once."""
    attempts: Annotated[dict[str, Attempt], Keyed] = field(default_factory=dict)
    """The answers tried, by round."""
    threshold: Threshold | None = None
    """The consistency above which an answer is final."""


class Update(RunUpdate, total=False):
    """What a node may change; None removes a key."""

    round: int
    query: str
    found: list[str]
    sources: dict[str, Piece | None]
    departures: dict[str, Departure]
    entities: list[str]
    attempts: dict[str, Attempt]
    threshold: Threshold


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Passages for the question, later others than those at hand for what the plan found missing."""
    settings, text = call.settings, state.query or state.question
    seen = state.sources if settings.update else ()
    wanted = as_query(text, state, k=settings.top_k, mode=settings.mode, seen=seen)
    found = await find(call.context, {"": wanted} if settings.evidence else {})
    return {"round": state.round + 1, "found": found.get("", [])}


@node
async def collate(state: State, call: Call[Settings]) -> Update:
    """Old and new passages are scored for question and query, and the best stay (equation 2)."""
    settings = call.settings
    query = _matching(state) if settings.evaluate_evidence else ""
    references = [*state.found, *(ranked(state.sources) if settings.update else [])]
    read = await load(call.context.archive, references)
    places = casebook.first_places(read)
    scores = dict.fromkeys(places, inquiry.UNDECIDED)
    if settings.evaluate_evidence:
        call.require(len(places))
        pieces = dict(zip(places, sources(read[at] for at in places.values()), strict=True))
        scores = await inquiry.helpfulness(call.model, query, pieces)
    best = casebook.top(scores, settings.max_sources)
    kept = {id: casebook.piece(state.sources.get(id), references[places[id]], scores[id], state.round) for id in best}
    gone = {id: id for id in state.sources if id not in kept}
    notes, widowed = await _without_support(state, call, [read[places[id]] for id in best])
    return {
        "sources": {**dict.fromkeys(gone), **kept},
        "notes": notes,
        "departures": casebook.outranked(state.round, gone, scores, query, settings.max_sources) | widowed,
    }


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """An answer with its reasons, and a second one drawn freely from the same evidence."""
    settings = call.settings
    if state.halted or not call.affords(2 if settings.evaluate_answer else 1):
        return {"verdict": casebook.cut_short(state.question, state.attempts, state.notes)}
    shown = await load(call.context.archive, ranked(state.sources) if settings.source_evidence else [])
    known, from_memory = known_steps(state.notes.values()), not settings.evidence
    given = reasoning.ReasonInput(question=state.question, sources=sources(shown), known=known)
    first, second = await inquiry.tried(call.model, given, from_memory=from_memory, twice=settings.evaluate_answer)
    text = clean(first.answer)
    attempt = Attempt(
        answer=text,
        reason=first.reason,
        second=clean(second),
        declarative=outcomes.declarative(text),
        consistency=None,
        citations=cited(call.model, text, first.citations, shown),
    )
    return {"attempts": {str(state.round): attempt}}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """An answer is final if it states something and the second one says the same (equation 1), or at the end."""
    settings, attempt = call.settings, _latest(state)
    limit = state.threshold or inquiry.limit_of(settings.threshold, call.context.thresholds)
    consistency = None
    if settings.evaluate_answer and attempt["declarative"]:
        call.require()
        second = attempt["second"] or "(none)"
        both = judging.ConsistencyInput(question=state.question, answer=attempt["answer"], second=second)
        consistency = await inquiry.probability(call.model, judging.CONSISTENCY, both)
    verified = {str(state.round): Attempt(**{**attempt, "consistency": consistency})}
    final: Update = {}
    if consistency is not None and consistency > limit["value"]:
        final = _end(state, call.model, attempt)
    elif state.round >= settings.max_iterations or not settings.evidence:
        closest = casebook.best(state.attempts | verified)
        if closest and settings.evaluate_answer:
            call.model.warn("no answer was consistent enough: this one came closest")
        final = _end(state, call.model, closest)
    return {"attempts": verified, "threshold": limit, **final}


@node
async def discover(state: State, call: Call[Settings]) -> Update:
    """What follows from the passages about the key entities, tested (equation 3); the best inferences stay (4)."""
    settings = call.settings
    if not (settings.inferential_evidence and state.sources):
        return {}
    call.require(1 if state.entities else 2)
    shown = await load(call.context.archive, ranked(state.sources))
    entities = state.entities or await inquiry.key_entities(call.model, state.question)
    given = reasoning.InferInput(question=state.question, entities=tuple(entities), sources=sources(shown))
    known = state.notes if settings.update else casebook.handed_over(state.notes)
    new = await inquiry.inferred(call.model, given, shown, round=state.round, known=known)
    candidates = new | inferences(known)
    query, scores = "", dict.fromkeys(candidates, inquiry.UNDECIDED)
    if settings.evaluate_evidence:
        if not call.affords(2 * len(new) + len(candidates)):
            return {"entities": entities, "halted": True}
        failed = await inquiry.refuted(call.model, new, query=_matching(state), known=known, shown=shown)
        pieces = {key: casebook.as_source(found) for key, found in candidates.items() if key not in failed}
        query, scores = state.question, await inquiry.helpfulness(call.model, state.question, pieces)
    kept = casebook.top(scores, settings.max_inferences)
    gone = {key: found["finding"] for key, found in inferences(state.notes).items() if key not in kept}
    return {
        "entities": entities,
        "notes": dict.fromkeys(gone) | {key: new[key] for key in kept if key in new},
        "departures": casebook.outranked(state.round, gone, scores, query, settings.max_inferences),
    }


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """What to look for next: the gap between what is known and what is asked (equation 5)."""
    call.require()
    shown = await load(call.context.archive, ranked(state.sources))
    reason, known = _latest(state)["reason"], known_steps(state.notes.values())
    given = reasoning.RequeryInput(question=state.question, reason=reason, sources=sources(shown), known=known)
    again, loss = reasoning.Requery.model_construct(query=state.question), "The question itself is searched again."
    planned = await ask_or(call.model, reasoning.REQUERY, given, again, loss)
    return {"query": planned.query}


# Routers. A run whose budget has no room for a node's calls is halted there, and `answer` ends it with what it has.


def begin(state: State) -> Literal["retrieve", "answer"]:
    """A final answer that was handed over may be enough: it is tried before anything is searched."""
    return "answer" if state.is_settled else "retrieve"


def after_answer(state: State) -> Literal["verify", "__end__"]:
    """To the check of the answer, unless the run has ended."""
    return "__end__" if state.verdict else "verify"


def after_verify(state: State) -> Literal["discover", "answer", "__end__"]:
    """Into a further round, unless the answer was final."""
    if state.verdict:
        return "__end__"
    return "answer" if state.halted else "discover"


def after_discover(state: State) -> Literal["plan", "answer"]:
    """To the next query."""
    return "answer" if state.halted else "plan"


def after_plan(state: State) -> Literal["retrieve", "answer"]:
    """To its passages."""
    return "answer" if state.halted else "retrieve"


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(retrieve)
    graph.add_node(collate)
    graph.add_node(answer)
    graph.add_node(verify)
    graph.add_node(discover)
    graph.add_node(plan)
    graph.add_conditional_edges(START, begin)
    graph.add_edge("retrieve", "collate")
    graph.add_edge("collate", "answer")
    graph.add_conditional_edges("answer", after_answer)
    graph.add_conditional_edges("verify", after_verify)
    graph.add_conditional_edges("discover", after_discover)
    graph.add_conditional_edges("plan", after_plan)
    return graph


# What the nodes above are made of


def _matching(state: State) -> str:
    """What evidence is matched against: the question, and the query once there is one."""
    return f"{state.question} {state.query}" if state.query else state.question


def _latest(state: State) -> Attempt:
    return state.attempts[str(state.round)]


async def _without_support(
    state: State, call: Call[Settings], shown: list[Passage]
) -> tuple[dict[str, Note | None], dict[str, Departure]]:
    """What becomes of the inferences whose passages have all left; where there is no room to test them, they go."""
    settings = call.settings
    orphans = {} if settings.orphans == "keep" else casebook.orphaned(state.notes, shown)
    tests = len(orphans) * len(shown)
    testing = settings.orphans == "test" and settings.evaluate_evidence and call.affords(tests)
    kept = await inquiry.supported_anew(call.model, orphans, shown) if testing else {}
    return {**dict.fromkeys(orphans), **kept}, casebook.orphans_left(state.round, orphans, kept, tested=testing)


def _end(state: State, asking: ModelCaller, attempt: Attempt | None) -> Update:
    if attempt is None:
        return {"verdict": conclude("unknown", "", [])}
    found = casebook.as_note(state.question, attempt, state.notes)
    verdict = answered(asking, attempt["answer"], casebook.standing_on(state.notes, found))
    return {"notes": {"answer": found}, "verdict": verdict}


METHOD = Method(
    name="retro-rag",
    line="collate evidence, reason from it and take it back, until an answer agrees with itself",
    paper="Retrieval-augmented generation by evidence retroactivity in LLMs (Xiao et al., 2025)",
    when="first finds mislead, and an early mistake must be undone by later evidence",
    calls="8 to 66; 18 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
)
