"""RAS: search, turn passages into triples of the question's own graph, and plan from it (Jiang et al.).

    plan -> (retrieve -> structure -> plan)* -> answer

The language model plans from the chain of sub-queries and their triples, with `graph_model` also from their encoding as
a soft token. A round is a sub-query with its passages; at most `max_iterations` are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from pydantic import AfterValidator, Field

from sleuth.agents.formatting import SubQuery
from sleuth.agents.graph_encoder import describe_missing, is_graph_model
from sleuth.agents.model import Model
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import planning
from sleuth.agents.roles.inputs import QuestionInput
from sleuth.agents.roles.planning import NO_RETRIEVAL, SUBQ, SUFFICIENT, SoFar
from sleuth.agents.roles.reading import (
    ANSWER_AT_LENGTH,
    ANSWER_AT_LENGTH_WITH_EXAMPLES,
    ANSWER_FROM_FACTS,
    ANSWER_UNAIDED,
    ANSWER_UNAIDED_AT_LENGTH,
    MAX_TRIPLES,
    FromFacts,
    LongFromFacts,
    Sentence,
    Unaided,
)
from sleuth.graphs.core import (
    Ablation,
    Call,
    CheckedSettings,
    Context,
    InPaper,
    Keyed,
    Method,
    Note,
    Question,
    RunState,
    RunUpdate,
    ask_or,
    plan_unless_halted,
    summarize_update,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import (
    Round,
    add_evidence_check,
    as_steps,
    check_or_end,
    make_note,
    make_query,
    make_verdict,
    search_passages,
    stated_answer,
    verdict_of_sentences,
)
from sleuth.graphs.methods.ras import triple_graph
from sleuth.graphs.methods.ras.triple_graph import Fact, PassageTriples, RenderedFacts, cite_facts, entity_key
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


def _graph_model(folder: str) -> str:
    if folder and not is_graph_model(Path(folder)):
        raise ValueError(describe_missing(folder))
    return folder


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`."""

    graph_model: Annotated[str, AfterValidator(_graph_model)] = Field(
        default="", description="folder of a graph model, whose language model is served; empty: triples are text only"
    )
    top_k: int = Field(default=5, ge=1, le=100, description="passages for a sub-query")
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")
    max_iterations: int = Field(default=5, ge=1, le=20, description="sub-queries at most")
    retrieve: Annotated[bool, Ablation()] = Field(default=True, description="off: the question is answered unaided")
    plan: Annotated[bool, Ablation()] = Field(default=True, description="off: one pass with the question itself")
    triples: Annotated[bool, Ablation()] = Field(default=True, description="off: passages as they are, no graph")
    findings: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: the planner notes what each sub-query has found"
    )
    grounded: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: a triple whose names its passage does not have is dropped"
    )
    repeat_facts: Annotated[bool, InPaper(True)] = Field(
        default=False, description="a sub-query shows what it found even if an earlier one did too (paper: true)"
    )
    long_answers: bool = Field(default=False, description="answers of several sentences, each with its citations")
    examples: Annotated[bool, InPaper(True)] = Field(
        default=False, description="the prompt for a long answer has two examples of our own (paper: true)"
    )
    may_not_know: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: a guess is reported as unknown"
    )

    def model_for(self, model: Model, context: Context) -> Model:
        """Return the model that also reads the graph as a soft token, if `graph_model` names one."""
        if not self.graph_model:
            return model
        return context.graph_models.wrap(model, self.graph_model, context.embedder)


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of RAS. Rounds and facts are keyed by their number as text, entities by their `entity_key`."""

    decision: str = ""
    """The planner's last decision: [NO_RETRIEVAL], [SUBQ] or [SUFFICIENT]."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The sub-queries so far, "1" first."""
    unread: list[str] = field(default_factory=list)
    """Passages of the latest round without stored triples, by archive reference."""
    entities: Annotated[dict[str, str], Keyed] = field(default_factory=dict)
    """The nodes of the question's graph: each entity in its first spelling."""
    facts: Annotated[dict[str, Fact], Keyed] = field(default_factory=dict)
    """The edges of the question's graph, with their passages."""


class Update(RunUpdate, total=False):
    """Fields that a node may change; None removes a key."""

    decision: str
    rounds: dict[str, Round]
    unread: list[str]
    entities: dict[str, str]
    facts: dict[str, Fact]


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Decide if and what to look up (section 3.1); the first sub-query is the question itself."""
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
    answered = [note["question"] for note in state.notes.values() if note["finding"]]
    asked = {entity_key(text) for text in (*answered, *(round["query"] for round in state.rounds.values()))}
    if decision == SUBQ and entity_key(query) in asked:
        call.model.warn(f"The planner asked again {query!r}: the question is answered with what was found.")
        decision = SUFFICIENT
    if decision != SUBQ and not state.rounds:  # inherited notes do not answer the question, which is searched for
        decision, query = SUBQ, state.question
    return {**_decided(state, decision, query), "notes": notes}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the sub-query; those with stored triples enter the graph immediately (section 3.2).

    The others are kept in the state for `structure`: another run may fill the cache between its calls and their
    repetition after a crash, where replies are matched by their order.
    """
    settings, context = call.settings, call.context
    at = str(len(state.rounds))
    text = state.rounds[at]["query"]
    seen = {passage.id for passages in (await _read(state, call)).values() for passage in passages}
    query = make_query(text, state, k=settings.top_k, mode=settings.mode, seen=seen)
    found = (await search_passages(call, {at: query}))[at]
    update: Update = {"rounds": {at: Round(query=text, passages=found)}}
    if not settings.triples:
        return update
    before = {name for round in state.rounds.values() for name in round["passages"]}
    new = [name for name in found if name not in before]
    passages = dict(zip(new, await call.load(new), strict=True))
    known = await triple_graph.stored_triples(context.triples, passages)
    unread = [name for name in new if name not in known]
    return {**update, "unread": unread, **_enter(state, settings, [(passages[name], known[name]) for name in known])}


@node
async def structure(state: State, call: Call[Settings]) -> Update:
    """Extract triples from passages that no run has read yet, and add them to the question's graph (section 3.2)."""
    call.require(len(state.unread))
    context = call.context
    passages = await call.load(state.unread)
    read = await triple_graph.extract_triples(context.triples, passages, call.model)
    return {**_enter(state, call.settings, read), "unread": []}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer the question from the chain, citing the passages of its triples, or unaided (section 3.3)."""
    notes = list(state.notes.values())
    if state.halted or not call.affords():
        return {"verdict": make_verdict("out_of_budget", notes[-1]["finding"] if notes else "", notes)}
    if state.decision == NO_RETRIEVAL:
        inherited, (found, sure) = list[Note](), await _answer_unaided(state, call)
    else:
        inherited, (found, sure) = list(_handed_over(state).values()), await _answer_from_facts(state, call)
    if not found or not (sure or not call.settings.may_not_know):
        return {"verdict": make_verdict("unknown", "", [])}
    verdict = verdict_of_sentences(call.model, found, inherited)
    keys = ["answer"] if len(found) == 1 else [f"sentence {at}" for at in range(1, len(found) + 1)]
    return {"notes": dict(zip(keys, found, strict=True)), "verdict": verdict}


# Routers. A run whose budget has no room for a node's calls is halted there, and ends with what it has.


def after_plan(state: State) -> Literal["retrieve", "answer"]:
    """Route to the sub-query, or to the end."""
    return "retrieve" if state.decision == SUBQ and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(plan)
    graph.add_node(retrieve)
    graph.add_node(structure)
    graph.add_node(answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan)
    graph.add_edge("retrieve", "structure")
    graph.add_conditional_edges("structure", plan_unless_halted)
    graph.add_conditional_edges("answer", check_or_end)
    add_evidence_check(graph)
    return graph


# What the nodes above are made of

_OPEN = "The question stays open."


def _forced(state: State, settings: Settings) -> str | None:
    """Return the decision that needs no planner: an ablation, the bound, or an inherited final answer."""
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
    state: State, shown: RenderedFacts, model: ModelCaller, *, noting: bool
) -> tuple[planning.Next, dict[str, Note | None]]:
    """Return the planner's decision, and the note of the latest round if the planner found an answer in it."""
    given, loss = _so_far(state, shown), "The question is answered with what was found."
    if not noting:
        return await ask_or(model, planning.NEXT, given, planning.Next(plan=SUFFICIENT), loss), {}
    said = await ask_or(model, planning.NEXT_WITH_FINDING, given, planning.NextWithFinding(plan=SUFFICIENT), loss)
    at, finding = str(len(state.rounds)), stated_answer(said.finding)
    query = state.rounds[at]["query"]
    if finding and entity_key(query) != entity_key(state.question):
        return said, {_key(at): make_note(query, finding, cite_facts(model, shown, said.facts, finding))}
    # No answer to a sub-query yet, but what leads to one is worth keeping, in words of its own.
    facts = {number: state.facts[str(number)] for number in said.facts if str(number) in state.facts}
    return said, {f"fact {number}": _fact_note(state, fact, number, shown, model) for number, fact in facts.items()}


def _fact_note(state: State, fact: Fact, number: int, shown: RenderedFacts, model: ModelCaller) -> Note:
    subject, object = (state.entities.get(fact[end], fact[end]) for end in ("subject", "object"))
    return make_note(f"{subject} – {fact['predicate']}?", object, cite_facts(model, shown, [number], object))


async def _answer_unaided(state: State, call: Call[Settings]) -> tuple[list[Note], bool]:
    """Return the model's own answer as a note, and whether it is more than a guess."""
    role = ANSWER_UNAIDED_AT_LENGTH if call.settings.long_answers else ANSWER_UNAIDED
    said = await ask_or(call.model, role, QuestionInput(question=state.question), Unaided(), _OPEN)
    text = stated_answer(said.answer, state.question)
    return [make_note(state.question, text, [])] if text else [], said.known


async def _answer_from_facts(state: State, call: Call[Settings]) -> tuple[list[Note], bool]:
    """Return the sentences of the answer, each as a note with its citations, and whether they are more than a guess."""
    settings, shown = call.settings, await _shown(state, call)
    given = _so_far(state, shown)
    if settings.long_answers:
        role = ANSWER_AT_LENGTH_WITH_EXAMPLES if settings.examples else ANSWER_AT_LENGTH
        said = await ask_or(call.model, role, given, LongFromFacts(), _OPEN)
        sentences, sure = said.sentences, said.known
    else:
        short = await ask_or(call.model, ANSWER_FROM_FACTS, given, FromFacts(), _OPEN)
        sentences, sure = [Sentence(text=short.answer, facts=short.facts)], short.known
    texts = [(stated_answer(each.text, state.question), each.facts) for each in sentences]
    notes = [make_note(state.question, text, cite_facts(call.model, shown, facts, text)) for text, facts in texts]
    return [each for each in notes if each["finding"]], sure


def _key(round: str) -> str:
    return f"sub-query {round}"


def _handed_over(state: State) -> dict[str, Note]:
    own = {_key(at) for at in state.rounds} | {f"fact {number}" for number in state.facts}
    return {key: found for key, found in state.notes.items() if key not in own}


def _enter(state: State, settings: Settings, found: PassageTriples) -> Update:
    """Return the additions of a part of the latest round's passages to the graph."""
    kept, dropped = triple_graph.drop_ungrounded(found) if settings.grounded else (found, [])
    entities, facts = triple_graph.merge_triples(state.entities, state.facts, str(len(state.rounds)), kept)
    most = f"may hold more facts: no more than {MAX_TRIPLES} are asked for from one passage"
    at_limit = [f"{passage.id} {most}" for passage, triples in found if len(triples) >= MAX_TRIPLES]
    return {"entities": entities, "facts": facts, "warnings": [*at_limit, *dropped]}


async def _read(state: State, call: Call[Settings]) -> dict[str, list[Passage]]:
    """Load the passages of each round."""
    return {at: await call.load(round["passages"]) for at, round in state.rounds.items()}


async def _shown(state: State, call: Call[Settings]) -> RenderedFacts:
    """Render all findings in the form that roles read."""
    rounds = await _read(state, call)
    repeat = call.settings.repeat_facts
    if not call.settings.triples:
        return triple_graph.render_passages(rounds, repeat=repeat)
    return triple_graph.render_triples(state.entities, state.facts, rounds, repeat=repeat)


def _so_far(state: State, shown: RenderedFacts) -> SoFar:
    findings = {at: state.notes[_key(at)]["finding"] for at in state.rounds if _key(at) in state.notes}
    queries = (SubQuery(text=round["query"], finding=findings.get(at, "")) for at, round in state.rounds.items())
    known = as_steps(_handed_over(state).values())
    return SoFar(question=state.question, queries=tuple(queries), sources=shown.sources, known=known)


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    graph = [f"relations, new or in further passages: {len(update['facts'])}"] if update.get("facts") else []
    return [*graph, *summarize_update(update)]


METHOD = Method(
    name="ras",
    line="search, turn the passages into a graph of the question's own, and plan the next search from it",
    paper="RAS: Retrieval-And-Structuring for knowledge-intensive LLM generation (Jiang et al., 2025)",
    when="facts from many passages have to be put together, and what they add up to should be seen",
    calls="8 to 20; 9 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
    fidelity=Path(__file__).with_name("fidelity.toml"),
    summarize_update=summarize,
    read_graph=triple_graph.read_graph,
)
