"""RAS: retrieve, structure into triples, and plan the next search from them (Jiang et al., 2025).

    decide if the question needs a search, plan            section 3.1
    while there is a sub-query q:
        D = retrieve(q)                                    section 3.2
        G = G + structure(D)                               section 3.2, equation 6
        plan the next q from the chain of (q, G)           section 3.1
    answer from the chain, or unaided                      section 3.3

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
from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import Role
from sleuth.agents.roles import planning, reading
from sleuth.agents.roles.inputs import QuestionInput
from sleuth.agents.roles.planning import NO_RETRIEVAL, SUBQ, SUFFICIENT, SoFar
from sleuth.graphs.core.answer import Note, make_verdict
from sleuth.graphs.core.context import Ablation, CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method, summarize_update
from sleuth.graphs.core.node import Call, check_budget, known_notes, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import as_steps, make_note, stated_answer, verdict_of_sentences
from sleuth.graphs.evidence.retrieval import Round, make_query, search_once
from sleuth.graphs.methods.ras import triple_graph
from sleuth.graphs.methods.ras.triple_graph import Fact, PassageTriples, RenderedFacts, cite_facts, entity_key
from sleuth.tools.errors import needs_part
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


def _graph_model(folder: str) -> str:
    if not folder:
        return folder
    with needs_part("graph-model", "The setting graph_model of ras"):
        from sleuth.agents.graph_encoder import describe_missing, is_graph_model

    if not is_graph_model(Path(folder)):
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
        from sleuth.agents.graph_encoder import ModelWithGraph

        return ModelWithGraph(model, self.graph_model, context.embedder)


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of RAS. Rounds and facts are keyed by their number as text, entities by their `entity_key`."""

    decision: str = ""
    """The planner's last decision: [NO_RETRIEVAL], [SUBQ] or [SUFFICIENT]."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The sub-queries so far, "1" first."""
    unread: list[PassageRef] = field(default_factory=list)
    """Passages of the latest round without stored triples."""
    entities: Annotated[dict[str, str], Keyed] = field(default_factory=dict)
    """The nodes of the question's graph: each entity in its first spelling."""
    facts: Annotated[dict[str, Fact], Keyed] = field(default_factory=dict)
    """The edges of the question's graph, with their passages."""


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Decide if and what to look up (section 3.1); the first sub-query is the question itself."""
    settings = call.settings
    if forced := _forced(state, settings):
        return _decided(state, forced, state.question)
    call.require()
    if not (state.rounds or state.notes):
        asked = QuestionInput(question=state.question)
        decision = await call.model.ask_or(planning.BEGIN, asked, SUBQ, "The question is looked up.")
        return _decided(state, decision, state.question)
    rendered = _rendered(state, call)
    with_finding = settings.findings and bool(state.rounds)
    role: Role[SoFar, Any] = planning.NEXT_WITH_FINDING if with_finding else planning.NEXT
    enough, loss = planning.NextWithFinding(plan=SUFFICIENT), "The question is answered with what was found."
    reply = await call.model.ask_or(role, _chain(state, rendered), enough, loss)
    decision, query = reply.plan, reply.query.strip()
    notes = _findings(reply, state, rendered, call.model) if with_finding else {}  # ours
    if decision == SUBQ and _is_repeated(query, state):  # ours
        call.model.warn(f"The planner asked again {query!r}: the question is answered with what was found.")
        decision = SUFFICIENT
    if decision != SUBQ and not state.rounds:  # ours: inherited notes do not answer the question, which is searched for
        decision, query = SUBQ, state.question
    return {**_decided(state, decision, query), "notes": notes}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the sub-query; those with stored triples enter the graph immediately (section 3.2).

    The others are kept in the state for `structure`: another run may fill the cache between its calls and their
    repetition after a crash, where replies are matched by their order.
    """
    settings = call.settings
    at = str(len(state.rounds))
    text = state.rounds[at]["query"]
    seen = frozenset(passage.id for passages in _passages(state, call).values() for passage in passages)
    references = await search_once(call, make_query(settings, text, state, seen=seen))
    update: Update = {"rounds": {at: Round(query=text, passages=references)}}
    if not settings.triples:
        return update
    before = {name for round in state.rounds.values() for name in round["passages"]}
    new = [name for name in references if name not in before]
    passages = dict(zip(new, call.passages(new), strict=True))
    stored = await triple_graph.stored_triples(call.context.triples, passages)
    unread = [name for name in new if name not in stored]
    return {**update, "unread": unread, **_enter(state, settings, [(passages[name], stored[name]) for name in stored])}


@node
async def structure(state: State, call: Call[Settings]) -> Update:
    """Extract triples from passages that no run has read yet, and add them to the question's graph (section 3.2)."""
    call.require(len(state.unread))
    passages = call.passages(state.unread)
    triples = await triple_graph.extract_triples(call.context.triples, passages, call.model)
    return {**_enter(state, call.settings, triples), "unread": []}


@node_with(notes_at_halt=known_notes)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer the question from the chain, citing the passages of its triples, or unaided (section 3.3)."""
    call.require()
    if state.decision == NO_RETRIEVAL:
        inherited, (sentences, is_known) = {}, await _answer_unaided(state, call)
    else:
        inherited, (sentences, is_known) = _inherited_notes(state), await _answer_from_facts(state, call)
    if not sentences or (call.settings.may_not_know and not is_known):
        return {"verdict": make_verdict("unknown", "", [])}
    verdict = verdict_of_sentences(call.model, sentences, inherited.values())
    keys = ["answer"] if len(sentences) == 1 else [f"sentence {at}" for at in range(1, len(sentences) + 1)]
    return {"notes": dict(zip(keys, sentences, strict=True)), "verdict": verdict}


# Routers


def after_plan(state: State) -> Literal["retrieve", "answer"]:
    """Route to the sub-query, or to the end."""
    return "retrieve" if state.decision == SUBQ and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, plan, retrieve, structure, answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan)
    graph.add_edge("retrieve", "structure")
    graph.add_conditional_edges("structure", check_budget, {"left": "plan", "spent": "answer"})
    add_evidence_check(graph, "answer")
    return graph


# What the nodes above are made of

_OPEN = "The question stays open."


def _forced(state: State, settings: Settings) -> str | None:
    """Return the decision that needs no planner: that of an ablation, or of the bound."""
    if not settings.retrieve:
        return NO_RETRIEVAL
    if len(state.rounds) >= settings.max_iterations:
        return SUFFICIENT
    if not settings.plan:
        return SUFFICIENT if state.rounds else SUBQ
    return None


def _decided(state: State, decision: str, query: str) -> Update:
    if decision != SUBQ:
        return {"decision": decision}
    return {"decision": decision, "rounds": {str(len(state.rounds) + 1): Round(query=query, passages=[])}}


async def _answer_unaided(state: State, call: Call[Settings]) -> tuple[list[Note], bool]:
    """Return the model's own answer as a note, and whether it is more than a guess."""
    role = reading.ANSWER_UNAIDED_AT_LENGTH if call.settings.long_answers else reading.ANSWER_UNAIDED
    reply = await call.model.ask_or(role, QuestionInput(question=state.question), reading.Unaided(), _OPEN)
    text = stated_answer(reply.answer, state.question)
    return [make_note(state.question, text, [])] if text else [], reply.known


async def _answer_from_facts(state: State, call: Call[Settings]) -> tuple[list[Note], bool]:
    """Return the sentences of the answer, each as a note with its citations, and whether they are more than a guess."""
    settings, rendered = call.settings, _rendered(state, call)
    chain = _chain(state, rendered)
    if settings.long_answers:
        role = reading.ANSWER_AT_LENGTH_WITH_EXAMPLES if settings.examples else reading.ANSWER_AT_LENGTH
        reply = await call.model.ask_or(role, chain, reading.LongFromFacts(), _OPEN)
        sentences, is_known = reply.sentences, reply.known
    else:
        short = await call.model.ask_or(reading.ANSWER_FROM_FACTS, chain, reading.FromFacts(), _OPEN)
        sentences, is_known = [reading.Sentence(text=short.answer, facts=short.facts)], short.known
    texts = [(stated_answer(each.text, state.question), each.facts) for each in sentences]
    notes = [make_note(state.question, text, cite_facts(call.model, rendered, facts, text)) for text, facts in texts]
    return [each for each in notes if each["finding"]], is_known


def _enter(state: State, settings: Settings, triples: PassageTriples) -> Update:
    """Return the additions of a part of the latest round's passages to the graph."""
    grounded, dropped = triple_graph.drop_ungrounded(triples) if settings.grounded else (triples, [])  # ours
    entities, facts = triple_graph.merge_triples(state.entities, state.facts, str(len(state.rounds)), grounded)
    most = f"may hold more facts: no more than {reading.MAX_TRIPLES} are asked for from one passage"
    at_limit = [f"{passage.id} {most}" for passage, its in triples if len(its) >= reading.MAX_TRIPLES]
    return {"entities": entities, "facts": facts, "warnings": [*at_limit, *dropped]}


def _passages(state: State, call: Call[Settings]) -> dict[str, list[Passage]]:
    """Return the passages of each round."""
    return {at: call.passages(round["passages"]) for at, round in state.rounds.items()}


def _rendered(state: State, call: Call[Settings]) -> RenderedFacts:
    """Render all findings in the form that roles read."""
    rounds, repeat = _passages(state, call), call.settings.repeat_facts
    if not call.settings.triples:
        return triple_graph.render_passages(rounds, repeat=repeat)
    return triple_graph.render_triples(state.entities, state.facts, rounds, repeat=repeat)


def _chain(state: State, rendered: RenderedFacts) -> SoFar:
    """Return the sub-queries with their findings and triples."""
    queries = []
    for at, round in state.rounds.items():
        note = state.notes.get(_finding_key(at))
        queries.append(SubQuery(text=round["query"], finding=note["finding"] if note else ""))
    inherited = as_steps(_inherited_notes(state).values())
    return SoFar(question=state.question, queries=tuple(queries), sources=rendered.sources, known=inherited)


def _finding_key(round: str) -> str:
    return f"sub-query {round}"


def _inherited_notes(state: State) -> dict[str, Note]:
    """Return the notes of another run."""
    own = {_finding_key(at) for at in state.rounds} | {f"fact {number}" for number in state.facts}
    return {key: note for key, note in state.notes.items() if key not in own}


def _is_repeated(query: str, state: State) -> bool:
    """Return whether a sub-query was searched for before, or a note answers it."""
    answered = [note["question"] for note in state.notes.values() if note["finding"]]
    return entity_key(query) in map(entity_key, (*answered, *(round["query"] for round in state.rounds.values())))


def _findings(
    reply: planning.NextWithFinding, state: State, rendered: RenderedFacts, model: ModelCaller
) -> dict[str, Note]:
    """Return the note of the latest sub-query if the planner found its answer, else notes of the facts that it names.

    A fact that leads to an answer is worth keeping, in words of its own.
    """
    at, finding = str(len(state.rounds)), stated_answer(reply.finding)
    query = state.rounds[at]["query"]
    if finding and entity_key(query) != entity_key(state.question):
        return {_finding_key(at): make_note(query, finding, cite_facts(model, rendered, reply.facts, finding))}
    notes = {}
    for number in reply.facts:
        if fact := state.facts.get(str(number)):
            subject, object = (state.entities.get(fact[end], fact[end]) for end in ("subject", "object"))
            citations = cite_facts(model, rendered, [number], object)
            notes[f"fact {number}"] = make_note(f"{subject} – {fact['predicate']}?", object, citations)
    return notes


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
    settings=Settings,
    summarize_update=summarize,
    read_graph=triple_graph.read_graph,
)
