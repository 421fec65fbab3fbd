"""RetroRAG: collect, reason from and revise evidence, until an answer is consistent (Xiao et al., 2025).

    until an answer is final:
        retrieve passages for the question, later for the planned query
        collate: keep the N best passages                      equation 2
        answer twice from the evidence
        verify that both answers agree                         equation 1
        discover: infer facts, test them, keep the K best      equations 3 and 4
        plan the query for what is missing                     equation 5

Source evidence is passages, scored in each round; inferential evidence is what follows from them. Both are short lists:
evidence that no longer helps is removed, and `departures` records when and why.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import Role
from sleuth.agents.roles import inputs, judging, reasoning
from sleuth.graphs.core.answer import Note, Threshold, make_verdict
from sleuth.graphs.core.context import Ablation, CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method, summarize_update
from sleuth.graphs.core.node import Call, check_budget, gather_by_key, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, PassageRef, Question, RunState, Update
from sleuth.graphs.core.thresholds import choose_threshold
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.citations import find_support, verified_citations
from sleuth.graphs.evidence.outcomes import as_steps, make_note, stated_answer, verdict_for
from sleuth.graphs.evidence.retrieval import as_sources, make_query, search_once
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.graphs.methods.retro_rag import evidence
from sleuth.graphs.methods.retro_rag.evidence import (
    PUBLISHED,
    AnswerAttempt,
    EvidencePassage,
    InferenceScores,
    RemovedEvidence,
    rank_passages,
)
from sleuth.tools.search import Mode
from sleuth.tools.types import Passage


class Settings(CheckedSettings):
    """Settings of `--set`; those marked "ours" go beyond the paper and are off under `profile=paper`."""

    max_iterations: int = Field(default=5, ge=1, le=20, description="rounds of searching and answering")
    top_k: int = Field(default=5, ge=1, le=50, description="passages found in a round")
    mode: Annotated[Mode, InPaper("hybrid")] = Field(default="graph", description="how to search (paper: hybrid)")
    max_sources: int = Field(default=5, ge=1, le=50, description="passages kept as source evidence (N)")
    max_inferences: int = Field(default=5, ge=1, le=50, description="inferences kept (K)")
    threshold: Annotated[float | None, InPaper(PUBLISHED["value"])] = Field(
        default=None, ge=0, le=1, description="consistency that suffices; by default fitted, or 0.7 (paper: 0.7)"
    )
    all_inferences: Annotated[bool, InPaper(True)] = Field(
        default=False, description="as many inferences as the model finds, also without citations (paper: true)"
    )
    assess: Annotated[bool, InPaper(True)] = Field(
        default=False, description="the model assesses whether an answer is declarative (paper: true)"
    )
    examples: Annotated[bool, InPaper(True)] = Field(
        default=False, description="the prompt for an answer has two examples of our own (paper: true)"
    )
    orphans: Annotated[Literal["test", "drop", "keep"], InPaper("keep")] = Field(
        default="test", description="ours: inferences whose passages left are tested again, or go (paper: keep)"
    )
    evaluate_answer: Annotated[bool, Ablation()] = Field(
        default=True, description="off: no answer is final before the last round"
    )
    evidence: Annotated[bool, Ablation()] = Field(default=True, description="off: answers from memory")
    source_evidence: Annotated[bool, Ablation()] = Field(default=True, description="off: answers from inferences alone")
    inferential_evidence: Annotated[bool, Ablation()] = Field(
        default=True, description="off: answers from passages alone"
    )
    update: Annotated[bool, Ablation()] = Field(
        default=True, description="off: each round's evidence replaces that of the last"
    )
    evaluate_evidence: Annotated[bool, Ablation()] = Field(
        default=True, description="off: the newest is kept, nothing tested"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of RetroRAG. Inferences are notes (see evidence.py) with their passages."""

    round: int = 0
    """The number of searches."""
    query: str = ""
    """The query of the last plan; empty while that is the question itself."""
    candidates: list[PassageRef] = field(default_factory=list)
    """Passages found in this round."""
    sources: Annotated[dict[str, EvidencePassage], Keyed] = field(default_factory=dict)
    """The source evidence, by passage."""
    departures: Annotated[dict[str, RemovedEvidence], Keyed] = field(default_factory=dict)
    """Removed evidence with round and reason, by round and passage or inference."""
    entities: list[str] = field(default_factory=list)
    """The key entities of the question, named once."""
    attempts: Annotated[dict[str, AnswerAttempt], Keyed] = field(default_factory=dict)
    """The attempted answers, by round."""
    tests: Annotated[dict[str, InferenceScores], Keyed] = field(default_factory=dict)
    """The scores of all inferences, also of those that failed, by round and number."""
    threshold: Threshold | None = None
    """The consistency above which an answer is final."""


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the question, later new ones for the query of the plan."""
    settings, text = call.settings, state.query or state.question
    seen = frozenset(state.sources if settings.update else ())
    query = make_query(settings, text, state, seen=seen)
    return {"round": state.round + 1, "candidates": await search_once(call, query) if settings.evidence else []}


@node
async def collate(state: State, call: Call[Settings]) -> Update:
    """Score old and new passages for question and query, and keep the best (equation 2)."""
    settings = call.settings
    query = _matching(state) if settings.evaluate_evidence else ""
    references = [*state.candidates, *(rank_passages(state.sources) if settings.update else [])]
    read = call.passages(references)
    places: dict[str, int] = {}
    for at, passage in enumerate(read):  # a passage that is found again replaces its earlier copy
        places.setdefault(passage.id, at)
    scores = dict.fromkeys(places, evidence.UNDECIDED)
    if settings.evaluate_evidence:
        call.require(len(places))
        pieces = dict(zip(places, as_sources(read[at] for at in places.values()), strict=True))
        scores = await evidence.score_relevance(call.model, query, pieces)
    best = evidence.highest_scores(scores, settings.max_sources)
    sources = {}
    for id in best:
        before = state.sources.get(id)
        found_in = before["round"] if before else state.round
        sources[id] = EvidencePassage(reference=references[places[id]], round=found_in, score=scores[id])
    gone = {id: id for id in state.sources if id not in sources}
    departures = evidence.drop_lowest_ranked(state.round, gone, scores, query, settings.max_sources)
    notes, unsupported = await _revise_orphans(state, call, [read[places[id]] for id in best])  # ours
    return {"sources": {**dict.fromkeys(gone), **sources}, "notes": notes, "departures": departures | unsupported}


def _supporting_notes(state: State) -> list[Note]:
    closest = evidence.best_attempt(state.attempts)
    return evidence.supporting_notes(state.question, closest, state.notes) if closest else []


@node_with(notes_at_halt=_supporting_notes)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Generate an answer with its reasons, and a second one, sampled freely from the same evidence."""
    settings = call.settings
    call.require(2 if settings.evaluate_answer else 1)
    passages = call.passages(rank_passages(state.sources) if settings.source_evidence else [])
    request: Any = inputs.ReadInput(
        question=state.question, sources=as_sources(passages), known=as_steps(state.notes.values())
    )
    first: Role[Any, Any] = reasoning.REASON_WITH_EXAMPLES if settings.examples else reasoning.REASON
    second: Role[Any, Any] = reasoning.MONITOR
    if not settings.evidence:
        request, first, second = inputs.QuestionInput(question=state.question), reasoning.RECALL, reasoning.GUESS
    asks = [call.model.ask_or(first, request, reasoning.Reasoned(answer=""), "This round has no answer.")]
    if settings.evaluate_answer:
        asks.append(call.model.ask_or(second, request, reasoning.Direct(answer=""), "This round has no second answer."))
    reply, *others = await asyncio.gather(*asks)
    text, quotes = stated_answer(reply.answer, state.question), reply.citations if settings.evidence else []
    attempt = AnswerAttempt(
        answer=text,
        reason=reply.reason,
        second=strip_marks(others[0].answer) if others else "",
        declarative=bool(text),
        consistency=None,
        citations=verified_citations(call.model, text, quotes, passages, question=state.question),
    )
    return {"attempts": {str(state.round): attempt}}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """End the run with an answer that states something and agrees with the second one (equation 1), or after the last
    round.
    """
    settings, attempt = call.settings, _latest(state)
    fitted = call.context.thresholds.get(judging.CONSISTENCY.prompt)
    limit = state.threshold or choose_threshold(settings.threshold, fitted, PUBLISHED)
    if settings.evaluate_answer and attempt["answer"]:
        call.require(2 if settings.assess else 1)
        asked, text = state.question, attempt["answer"]
        both = judging.ConsistencyInput(question=asked, answer=text, second=attempt["second"] or "(none)")
        asks = [evidence.judge(call.model, judging.CONSISTENCY, both)]
        if settings.assess:
            stated = judging.DeclarativeInput(question=asked, answer=text)
            asks.append(evidence.judge(call.model, judging.DECLARATIVE, stated))
        consistency, *declarative = await asyncio.gather(*asks)
        is_declarative = all(each > evidence.UNDECIDED for each in declarative)
        attempt = attempt | {"declarative": is_declarative, "consistency": consistency}
    verified = {str(state.round): attempt}
    final: Update = {}
    if attempt["declarative"] and attempt["consistency"] is not None and attempt["consistency"] > limit["value"]:
        final = _end(state, call.model, attempt)
    elif state.round >= settings.max_iterations or not settings.evidence:
        closest = evidence.best_attempt(state.attempts | verified)
        if closest and settings.evaluate_answer:
            call.model.warn("no answer was consistent enough: this one came closest")
        final = _end(state, call.model, closest)
    return {"attempts": verified, "threshold": limit, **final}


@node
async def discover(state: State, call: Call[Settings]) -> Update:
    """Infer facts about the key entities from the passages, test them (equation 3), and keep the best (4)."""
    settings = call.settings
    if not (settings.inferential_evidence and state.sources):
        return {}
    call.require(1 if state.entities else 2)
    passages = call.passages(rank_passages(state.sources))
    entities = state.entities or await evidence.name_entities(call.model, state.question)
    request = reasoning.InferInput(question=state.question, entities=tuple(entities), sources=as_sources(passages))
    merged = state.notes if settings.update else evidence.inherited_notes(state.notes)
    new = await evidence.infer(
        call.model, request, passages, round=state.round, earlier=merged, all=settings.all_inferences
    )
    candidates = new | evidence.inferences(merged)
    query, scores, tests = "", dict.fromkeys(candidates, evidence.UNDECIDED), dict[str, InferenceScores]()
    if settings.evaluate_evidence:
        if not call.affords(2 * len(new) + len(candidates)):
            return {"entities": entities, "halted": True}
        query, matching = state.question, _matching(state)
        tests = await evidence.score_inferences(call.model, new, query=matching, earlier=state.notes, passages=passages)
        pieces = {
            key: Source(title="Inference", text=note["finding"])
            for key, note in candidates.items()
            if key not in tests or evidence.passes(tests[key])
        }
        scores = await evidence.score_relevance(call.model, query, pieces)
    best = evidence.highest_scores(scores, settings.max_inferences)
    gone = {key: note["finding"] for key, note in evidence.inferences(state.notes).items() if key not in best}
    return {
        "entities": entities,
        "notes": dict.fromkeys(gone) | {key: new[key] for key in best if key in new},
        "tests": {key: test | {"evidence": scores.get(key)} for key, test in tests.items()},
        "departures": evidence.drop_lowest_ranked(state.round, gone, scores, query, settings.max_inferences),
    }


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Plan the next query: the gap between the known facts and the question (equation 5)."""
    call.require()
    passages = call.passages(rank_passages(state.sources))
    reason, findings = _latest(state)["reason"], as_steps(state.notes.values())
    request = reasoning.RequeryInput(
        question=state.question, reason=reason, sources=as_sources(passages), known=findings
    )
    again, loss = reasoning.Requery.model_construct(query=state.question), "The question itself is searched again."
    planned = await call.model.ask_or(reasoning.REQUERY, request, again, loss)
    return {"query": planned.query}


# Routers


def after_answer(state: State) -> Literal["verify", "__end__"]:
    """Route to the verification, unless the run has ended."""
    return "__end__" if state.verdict else "verify"


def after_verify(state: State) -> Literal["discover", "answer", "__end__"]:
    """Route to a further round, unless the answer was final."""
    if state.halted:
        return "answer"
    return "__end__" if state.verdict else "discover"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, retrieve, collate, answer, verify, discover, plan)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "collate")
    graph.add_edge("collate", "answer")
    graph.add_conditional_edges("answer", after_answer)
    graph.add_conditional_edges("verify", after_verify)
    graph.add_conditional_edges("discover", check_budget, {"left": "plan", "spent": "answer"})
    graph.add_conditional_edges("plan", check_budget, {"left": "retrieve", "spent": "answer"})
    add_evidence_check(graph, "answer", "verify")
    return graph


# What the nodes above are made of


def _matching(state: State) -> str:
    """Return the text to match evidence against: the question, and the query once there is one."""
    return f"{state.question} {state.query}" if state.query else state.question


def _latest(state: State) -> AnswerAttempt:
    return state.attempts[str(state.round)]


async def _revise_orphans(
    state: State, call: Call[Settings], passages: Sequence[Passage]
) -> tuple[dict[str, Note | None], dict[str, RemovedEvidence]]:
    """Return the updates of inferences without passages; they are removed if the budget has no room to test them.

    Ablations leave them alone: without updating all passages leave in each round, and without evaluation of evidence
    nothing is tested.
    """
    settings, orphans = call.settings, {}
    if settings.update and (settings.orphans == "drop" or (settings.orphans == "test" and settings.evaluate_evidence)):
        left = {passage.id for passage in passages}
        every = evidence.inferences(state.notes)
        orphans = {key: note for key, note in every.items() if not left & set(note["passages"])}
    testing = settings.orphans == "test" and call.affords(len(orphans) * len(passages))
    inferences = await _supported(call.model, orphans, passages) if testing else {}
    outcome = "no other passage supports it" if testing else "it was not tested again"
    removed = {}
    for key, note in orphans.items():
        if key not in inferences:
            why = f"its passages have left ({', '.join(note['passages'])}): {outcome}"
            removed[f"{state.round} {key}"] = RemovedEvidence(round=state.round, what=note["finding"], why=why)
    return {**dict.fromkeys(orphans), **inferences}, removed


async def _supported(model: ModelCaller, orphans: Mapping[str, Note], passages: Sequence[Passage]) -> dict[str, Note]:
    """Return the inferences that other passages support, with these as their passages; each passage is tested alone."""
    asks = {}
    for key, orphan in orphans.items():
        for at, passage in enumerate(passages):
            request = judging.AttributionInput(claim=orphan["finding"], sources=as_sources([passage]))
            asks[key, at] = evidence.judge(model, judging.ATTRIBUTION, request)
    scores = await gather_by_key(asks)
    supported = {}
    for key, orphan in orphans.items():
        saying = [passage for at, passage in enumerate(passages) if scores[key, at] > evidence.UNDECIDED]
        if saying:
            citations = find_support(orphan["finding"], saying)
            note = make_note(orphan["question"], orphan["finding"], citations, "its first passages have left")
            supported[key] = evidence.with_sources(note, saying)
    return supported


def _end(state: State, model: ModelCaller, attempt: AnswerAttempt | None) -> Update:
    if attempt is None:
        return {"verdict": make_verdict("unknown", "", [])}
    notes = evidence.supporting_notes(state.question, attempt, state.notes)
    return {"notes": {"answer": notes[-1]}, "verdict": verdict_for(model, attempt["answer"], notes)}


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node, with what left the evidence, and why."""
    removed = (update.get("departures") or {}).values()
    return [
        *summarize_update(update),
        *(f"left in round {each['round']}: {each['what']}: {each['why']}" for each in removed),
    ]


METHOD = Method(
    name="retro-rag",
    line="collect evidence, reason from it and revise it, until the answer is consistent",
    paper="Retrieval-augmented generation by evidence retroactivity in LLMs (Xiao et al., 2025)",
    when="first finds mislead, and an early mistake must be undone by later evidence",
    calls="8 to 76; 13 on two hops",
    graph=graph,
    settings=Settings,
    summarize_update=summarize,
)
