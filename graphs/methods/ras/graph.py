"""RAS: search, turn what is found into triples of the question's own graph, and plan from it (Jiang et al.).

    plan -> (retrieve -> structure -> plan)* -> answer

The language model plans from the chain of sub-queries and their triples, with `graph_model` also from these encoded as
a token. A round is a sub-query with its passages; at most `max_iterations` are made.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from sleuth.agents.formatting import SubQuery
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import planning
from sleuth.agents.roles.planning import NO_RETRIEVAL, SUBQ, SUFFICIENT, SoFar
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS, ANSWER_UNAIDED, FromFacts, Unaided
from sleuth.agents.roles.reasoning import QuestionInput
from sleuth.graphs.core import Call, Context, Keyed, Method, Note, Question, RunState, RunUpdate, ask_or
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import answered, as_query, clean, conclude, find, known_steps, load, note
from sleuth.graphs.methods.ras.graph_model import GraphSettings
from sleuth.graphs.methods.ras.triple_graph import (
    Fact,
    Found,
    Round,
    Shown,
    as_texts,
    as_triples,
    cite,
    extract,
    full,
    grounded,
    identity,
    look_up,
    merge,
)
from sleuth.tools.search import Mode, Query
from sleuth.tools.types import Passage


class Settings(GraphSettings):
    """What can be set with `--set`; what is marked "ours" goes beyond the paper and is off under `profile=paper`."""

    top_k: int = Field(default=5, ge=1, le=100, description="passages for a sub-query")
    mode: Mode = Field(default="graph", description="how to search (paper: dense)")
    max_iterations: int = Field(default=5, ge=1, le=20, description="sub-queries at most")
    retrieve: bool = Field(default=True, description="off: the question is answered unaided (ablation)")
    plan: bool = Field(default=True, description="off: one pass with the question itself (ablation)")
    triples: bool = Field(default=True, description="off: passages as they are, no graph (ablation)")
    findings: bool = Field(default=True, description="ours: the planner notes what each sub-query has found")
    grounded: bool = Field(default=True, description="ours: a triple whose names its passage does not have is dropped")
    may_not_know: bool = Field(default=True, description="ours: a guess is reported as unknown")

    def as_in_paper(self) -> "Settings":
        """Vector search; no notes on the way; every triple counts; there is always an answer."""
        ours = {"findings": False, "grounded": False, "may_not_know": False}
        return self.model_copy(update={"mode": "dense", **ours})


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Rounds are keyed by their number as text, entities by their identity, facts by their number as text."""

    decision: str = ""
    """What the planner said last: [NO_RETRIEVAL], [SUBQ] or [SUFFICIENT]."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The sub-queries so far, "1" first."""
    unread: list[str] = field(default_factory=list)
    """Passages of the latest round whose triples have to be asked for, by archive reference."""
    entities: Annotated[dict[str, str], Keyed] = field(default_factory=dict)
    """The nodes of the question's graph: each entity as it was written first."""
    facts: Annotated[dict[str, Fact], Keyed] = field(default_factory=dict)
    """The edges of the question's graph, with their passages."""


class Update(RunUpdate, total=False):
    """What a node may change; None removes a key."""

    decision: str
    rounds: dict[str, Round]
    unread: list[str]
    entities: dict[str, str]
    facts: dict[str, Fact]


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Whether to look something up, and what (section 3.1); the first sub-query is the question itself."""
    settings = call.settings
    if forced := _forced(state, settings):
        return _decided(state, forced, state.question)
    call.require()
    if not (state.rounds or state.notes):
        decision = await ask_or(
            call.model, planning.BEGIN, QuestionInput(question=state.question), SUBQ, "The question is looked up."
        )
        return _decided(state, decision, state.question)
    shown = await _shown(state, call)
    said, notes = await _plan_next(state, shown, call.model, noting=settings.findings and bool(state.rounds))
    decision, query = said.plan, said.query.strip()
    if decision == SUBQ and identity(query) in _asked(state):
        call.model.warn(f"The planner asked again {query!r}: the question is answered with what was found.")
        decision = SUFFICIENT
    if decision != SUBQ and not state.rounds:  # handed-over notes are no answer: the question is searched for
        decision, query = SUBQ, state.question
    update = _decided(state, decision, query)
    return {**update, "notes": notes}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Passages for the sub-query; those that were turned into triples before enter the graph at once (section 3.2).

    What is left to `structure` is kept in the state: another run may fill the cache between its asks and their
    repetition after a crash, where replies are matched by their order.
    """
    settings, context = call.settings, call.context
    at = str(len(state.rounds))
    query = state.rounds[at]["query"]
    found = (await find(context, {at: await _query(state, settings, call)}))[at]
    update: Update = {"rounds": {at: Round(query=query, passages=found)}}
    if not settings.triples:
        return update
    before = {name for round in state.rounds.values() for name in round["passages"]}
    new = [name for name in found if name not in before]
    passages = dict(zip(new, await load(context.archive, new), strict=True))
    known = await look_up(context.triples, passages)
    unread = [name for name in new if name not in known]
    return {**update, "unread": unread, **_enter(state, settings, [(passages[name], known[name]) for name in known])}


@node
async def structure(state: State, call: Call[Settings]) -> Update:
    """Passages that nobody has read yet become triples, and these a part of the question's graph (section 3.2)."""
    call.require(len(state.unread))
    context = call.context
    passages = await load(context.archive, state.unread)
    read = await extract(context.triples, passages, call.model)
    entered = _enter(state, call.settings, read)
    return {**entered, "unread": []}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """The question answered from the chain, citing what stands behind its triples, or unaided (section 3.3)."""
    notes = list(state.notes.values())
    if state.halted or not call.affords():
        return {"verdict": conclude("out_of_budget", notes[-1]["finding"] if notes else "", notes)}
    said: FromFacts | Unaided
    known: list[Note] = []
    if state.decision == NO_RETRIEVAL:
        said = await ask_or(call.model, ANSWER_UNAIDED, QuestionInput(question=state.question), Unaided(), _OPEN)
        text, citations = clean(said.answer), []
    else:
        shown, known = await _shown(state, call), list(_handed_over(state).values())
        said = await ask_or(call.model, ANSWER_FROM_FACTS, _so_far(state, shown), FromFacts(), _OPEN)
        text = clean(said.answer)
        citations = cite(call.model, shown, said.facts, text)
    if not text or not (said.known or not call.settings.may_not_know):
        return {"verdict": conclude("unknown", "", [])}
    found = note(state.question, text, citations)
    verdict = answered(call.model, text, [*known, found])
    return {"notes": {"answer": found}, "verdict": verdict}


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def after_plan(state: State) -> Literal["retrieve", "answer"]:
    """To the sub-query, or to the end."""
    return "retrieve" if state.decision == SUBQ and not state.halted else "answer"


def after_structure(state: State) -> Literal["plan", "answer"]:
    """Back to the planner."""
    return "answer" if state.halted else "plan"


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(plan)
    graph.add_node(retrieve)
    graph.add_node(structure)
    graph.add_node(answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan)
    graph.add_edge("retrieve", "structure")
    graph.add_conditional_edges("structure", after_structure)
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of

_OPEN = "The question stays open."


def _forced(state: State, settings: Settings) -> str | None:
    """What needs no planner: an ablation, the bound, or a question whose answer was handed over."""
    if not settings.retrieve:
        return NO_RETRIEVAL
    if len(state.rounds) >= settings.max_iterations or state.is_settled:
        return SUFFICIENT
    if not settings.plan:
        return SUFFICIENT if state.rounds else SUBQ
    return None


def _decided(state: State, decision: str, query: str) -> Update:
    if decision != SUBQ:
        return {"decision": decision}
    return {"decision": decision, "rounds": {str(len(state.rounds) + 1): Round(query=query, passages=[])}}


async def _plan_next(
    state: State, shown: Shown, asking: ModelCaller, *, noting: bool
) -> tuple[planning.Next, dict[str, Note | None]]:
    """The planner's word, and the note of the latest round if it tells what that has found."""
    given, loss = _so_far(state, shown), "The question is answered with what was found."
    if not noting:
        return await ask_or(asking, planning.NEXT, given, planning.Next(plan=SUFFICIENT), loss), {}
    said = await ask_or(asking, planning.NEXT_WITH_FINDING, given, planning.NextWithFinding(plan=SUFFICIENT), loss)
    at, finding = str(len(state.rounds)), clean(said.finding)
    query = state.rounds[at]["query"]
    if finding and identity(query) != identity(state.question):
        return said, {_key(at): note(query, finding, cite(asking, shown, said.facts, finding))}
    # No answer to a sub-query yet, but what leads to one is worth keeping, in words of its own.
    facts = {number: state.facts[str(number)] for number in said.facts if str(number) in state.facts}
    return said, {f"fact {number}": _fact_note(state, fact, number, shown, asking) for number, fact in facts.items()}


def _fact_note(state: State, fact: Fact, number: int, shown: Shown, asking: ModelCaller) -> Note:
    subject, object = (state.entities.get(fact[end], fact[end]) for end in ("subject", "object"))
    return note(f"{subject} – {fact['predicate']}?", object, cite(asking, shown, [number], object))


def _key(round: str) -> str:
    return f"sub-query {round}"


def _handed_over(state: State) -> dict[str, Note]:
    own = {_key(at) for at in state.rounds} | {f"fact {number}" for number in state.facts}
    return {key: found for key, found in state.notes.items() if key not in own}


def _known(notes: dict[str, Note]) -> set[str]:
    return {identity(found["question"]) for found in notes.values() if found["finding"]}


def _asked(state: State) -> set[str]:
    return {identity(round["query"]) for round in state.rounds.values()} | _known(state.notes)


def _enter(state: State, settings: Settings, found: Found) -> Update:
    """What a part of the latest round's passages adds to the graph."""
    kept, dropped = grounded(found) if settings.grounded else (found, [])
    entities, facts = merge(state.entities, state.facts, str(len(state.rounds)), kept)
    return {"entities": entities, "facts": facts, "warnings": [*full(found), *dropped]}


async def _query(state: State, settings: Settings, call: Call[Settings]) -> Query:
    """The latest sub-query, for passages that no round has found yet."""
    text = state.rounds[str(len(state.rounds))]["query"]
    seen = {passage.id for found in (await _read(state, call)).values() for passage in found}
    return as_query(text, state, k=settings.top_k, mode=settings.mode, seen=seen)


async def _read(state: State, call: Call[Settings]) -> dict[str, list[Passage]]:
    """The passages of each round."""
    return {at: await load(call.context.archive, round["passages"]) for at, round in state.rounds.items()}


async def _shown(state: State, call: Call[Settings]) -> Shown:
    """All that was found, as the roles are shown it."""
    rounds = await _read(state, call)
    with_graph = call.settings.triples
    return as_triples(state.entities, state.facts, rounds) if with_graph else as_texts(rounds)


def _so_far(state: State, shown: Shown) -> SoFar:
    findings = {at: state.notes[_key(at)]["finding"] for at in state.rounds if _key(at) in state.notes}
    queries = (SubQuery(text=round["query"], finding=findings.get(at, "")) for at, round in state.rounds.items())
    known = known_steps(_handed_over(state).values())
    return SoFar(question=state.question, queries=tuple(queries), sources=shown.sources, known=known)


METHOD = Method(
    name="ras",
    line="search, turn what is found into a graph of the question's own, and plan the next search from it",
    paper="RAS: Retrieval-And-Structuring for knowledge-intensive LLM generation (Jiang et al., 2025)",
    when="facts from many passages have to be put together, and what they add up to should be seen",
    calls="8 to 26; 10 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
)
