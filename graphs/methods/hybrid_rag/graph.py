"""The hybrid system for CRAG: several sources side by side, one careful reasoner over all of them (KDD Cup 2024).

    classify -> (retrieve -> calculate | recall | query) -> aggregate -> answer -> verify

A question whose answer changes with time ends at once. A source that fails, is slow, or has no room in the budget is
left out with a warning; the budget always keeps a call for the answer. Each step of the paper's ladder is a setting.
Only a final answer to the same question that another run has handed over is read before the sources are asked.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from langgraph.graph import START, StateGraph

from sleuth.agents.formatting import ReferenceKind
from sleuth.agents.roles.hybrid import EXPRESS, RECALL_UNAIDED, Asked, ExpressInput, Expression, Recollection
from sleuth.graphs.core import Call, Context, Method, Question, RunState, RunUpdate, ask_or
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import conclude, keep, load
from sleuth.graphs.methods.hybrid_rag.attributes import Predicted, predicted
from sleuth.graphs.methods.hybrid_rag.reasoning import Ending, Said, reason, summarise
from sleuth.graphs.methods.hybrid_rag.references import Document, Finding, Reference, collect
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.graphs.methods.hybrid_rag.sources import (
    Gathered,
    chosen,
    day_of,
    evaluated,
    explored,
    found_passages,
    labelled,
    now,
    or_without,
    recollected,
)
from sleuth.tools.types import Passage

Source = Literal["retrieve", "calculate", "recall", "query"]


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """What each source has given, and the one document made of it."""

    asked_at: str = ""
    """When the question is asked, as it was set; the day of the run where it was not."""
    attributes: Predicted | None = None
    """The predicted attributes; None where none were asked for."""
    refused: bool = False
    """The answer changes with time, and nothing says that the sources are fresh."""
    sources: list[Source] = field(default_factory=list)
    """What is asked, by its node."""
    texts: list[str] = field(default_factory=list)
    """Passages of text, best first, by archive reference."""
    tables: list[str] = field(default_factory=list)
    """Passages of tables, best first, by archive reference."""
    calculations: list[Finding] = field(default_factory=list)
    """Expressions with their values."""
    recollection: Finding | None = None
    """What the model has answered without any source."""
    lookups: list[Finding] = field(default_factory=list)
    """Calls to the knowledge graph with their results."""
    references: list[Reference] = field(default_factory=list)
    """The reference document: what is shown of which text in the archive."""
    said: Said | None = None
    """The reasoner's answer."""
    unread: str = ""
    """The reasoner's reply where it could not be read, by archive reference."""
    tried: bool = False
    """The final answer that was handed over was not enough."""


class Update(RunUpdate, total=False):
    """What a node may change."""

    asked_at: str
    attributes: Predicted | None
    refused: bool
    sources: list[Source]
    texts: list[str]
    tables: list[str]
    calculations: list[Finding]
    recollection: Finding | None
    lookups: list[Finding]
    references: list[Reference]
    said: Said | None
    unread: str
    tried: bool


@node
async def classify(state: State, call: Call[Settings]) -> Update:
    """What is asked for and when (section 4.2), and so what is to be asked in turn."""
    settings, context = call.settings, call.context
    update: Update = {
        "asked_at": state.asked_at or settings.asked_at.strip() or now(),
        "sources": _sources(settings, context),
    }
    if not settings.attributes or state.is_settled:
        return update
    call.share(spare=_ANSWER)
    by_votes = settings.predictor == "in_context" or context.predictor is None
    if by_votes and not call.affords(2 * settings.votes + _ANSWER):
        return {**update, "warnings": [_no_room("The model's vote on the question's attributes")]}
    found = await predicted(call.model, state.question, None if by_votes else context.predictor, settings)
    refused = found is not None and found["dynamic"] and not settings.fresh
    return {**update, "attributes": found, "refused": refused}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Texts and tables most like the question, from the pages handed in or the collection (section 4.1)."""
    settings, context = call.settings, call.context
    gathering, limit = found_passages(context, state.question, settings), settings.source_seconds
    found, lost = await or_without("What was to be searched", gathering, Gathered(), seconds=limit)
    texts, tables = await keep(context.archive, found.texts), await keep(context.archive, found.tables)
    return {"texts": texts, "tables": tables, "warnings": [*lost, *found.left_out]}


@node
async def calculate(state: State, call: Call[Settings]) -> Update:
    """Expressions from what was found, worked out: no number is the model's own (section 4.3)."""
    settings = call.settings
    if "calculate" not in state.sources:
        return {}
    if not call.affords(settings.expressions + _ANSWER):
        return {"warnings": [_no_room("A calculation")]}
    texts, tables = [await load(call.context.archive, names) for names in (state.texts, state.tables)]
    given = ExpressInput(question=state.question, asked_at=state.asked_at, sources=labelled(texts, tables))
    call.share(spare=_ANSWER)
    loss = "One sample of an expression is missing."
    asks = (ask_or(call.model, EXPRESS, given, Expression(), loss) for _ in range(settings.expressions))
    said = [each.expression for each in await asyncio.gather(*asks)]
    found, faults = evaluated(said, day_of(state.asked_at))
    return {"calculations": found, "warnings": faults}


@node
async def recall(state: State, call: Call[Settings]) -> Update:
    """What the model knows by itself, to be trusted or not (section 4.4)."""
    if not call.affords(_side_by_side(state) + _ANSWER):
        return {"warnings": [_no_room("The model's own knowledge")]}
    call.share(spare=_ANSWER, sharing=_side_by_side(state))
    given, nothing = Asked(question=state.question, asked_at=state.asked_at), Recollection()
    said = await ask_or(call.model, RECALL_UNAIDED, given, nothing, "The model's own knowledge is missing.")
    found = None if said is nothing else recollected(said)
    return {"recollection": found}


@node
async def query(state: State, call: Call[Settings]) -> Update:
    """What the knowledge graph says, asked by one of two routes (section 4.5)."""
    settings, graph = call.settings, call.context.graph
    if graph is None or not call.affords(_side_by_side(state) + _ANSWER):
        return {"warnings": [_no_room("The knowledge graph") if graph else "There is no knowledge graph any more."]}
    call.share(spare=_ANSWER, sharing=_side_by_side(state))
    asked = Asked(question=state.question, asked_at=state.asked_at)
    domain = state.attributes["domain"] if state.attributes else None
    said = await chosen(call.model, graph, asked, route=settings.route)
    found, faults = await explored(graph, said, asked, domain=domain, seconds=settings.source_seconds)
    return {"lookups": found, "warnings": faults}


@node
async def aggregate(state: State, call: Call[Settings]) -> Update:
    """One reference document within a length; what is cut is said."""
    settings, archive = call.settings, call.context.archive
    known = [Finding(title=each["question"], text=each["finding"]) for each in state.notes.values() if each["finding"]]
    findings: dict[ReferenceKind, list[Finding]] = {
        "note": known,
        "graph": state.lookups,
        "expression": state.calculations,
        "model": [state.recollection] if state.recollection else [],
    }
    passages: dict[ReferenceKind, list[Passage]] = {
        "text": await load(archive, state.texts),
        "table": await load(archive, state.tables),
    }
    limits: dict[ReferenceKind, int] = {"table": settings.max_table_characters, "graph": settings.max_graph_characters}
    references, losses = await collect(archive, findings, passages, limits, settings.max_characters)
    return {"references": references, "warnings": losses}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """The question answered from all references at once, along an outline (section 4.6)."""
    call.require()
    settings, context = call.settings, call.context
    document = await Document.load(context.archive, state.references, context.pages)
    asked = Asked(question=state.question, asked_at=state.asked_at)
    said, unread = await reason(call.model, asked, document.sources, settings)
    held = (await context.archive.keep([unread]))[0] if unread else ""
    return {"said": said, "unread": held}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """What the answer amounts to: its form, "I don't know", a false premise, its citations (section 4.7)."""
    settings, context = call.settings, call.context
    if state.refused:
        return {"verdict": conclude("unknown", "", []), "warnings": [_DYNAMIC]}
    notes = list(state.notes.values())
    if state.halted or (state.unread and not call.affords()):
        return {"verdict": conclude("out_of_budget", notes[-1]["finding"] if notes else "", notes)}
    document = await Document.load(context.archive, state.references, context.pages)
    unread = (await context.archive.load([state.unread]))[0] if state.unread else ""
    said = state.said or await summarise(call.model, state.question, unread)
    ending = Ending.of(said, settings)
    if ending.status == "unknown" and state.is_settled and not state.tried and state.sources:
        return {"tried": True}
    verdict, found = ending.verdict(call.model, state.question, document, notes)
    return {"notes": found, "verdict": verdict}


# Routers. Sources that are not asked are passed by.


def after_classify(state: State) -> list[Literal["retrieve", "recall", "query", "aggregate", "verify"]]:
    """To all sources at once, unless the question ends here, or the answer handed over is to be tried first."""
    if state.refused:
        return ["verify"]
    return ["aggregate"] if state.is_settled else [*_asked(state)]


def after_verify(state: State) -> list[Literal["retrieve", "recall", "query", "aggregate", "__end__"]]:
    """To the sources, where the answer that was handed over was not enough."""
    return ["__end__"] if state.verdict else [*_asked(state)]


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(classify)
    graph.add_node(retrieve)
    graph.add_node(calculate)
    graph.add_node(recall)
    graph.add_node(query)
    graph.add_node(aggregate, defer=True)  # waits for whichever of the sources are asked
    graph.add_node(answer)
    graph.add_node(verify)
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", after_classify)
    graph.add_edge("retrieve", "calculate")  # no router: one is cut off in the middle where a node beside it fails
    graph.add_edge("calculate", "aggregate")
    graph.add_edge("recall", "aggregate")
    graph.add_edge("query", "aggregate")
    graph.add_edge("aggregate", "answer")
    graph.add_edge("answer", "verify")
    graph.add_conditional_edges("verify", after_verify)
    return graph


# What the nodes above are made of

_ANSWER = 1
"""Calls that are kept for the answer, whatever the sources would need."""

_DYNAMIC = (
    "the answer changes with time, and nothing says that the sources are up to date, so it is not given: "
    "where they are, ask again with --set fresh=true"
)


def _sources(settings: Settings, context: Context) -> list[Source]:
    """What is switched on, and there."""
    asked: dict[Source, bool] = {
        "retrieve": settings.retrieve,
        "calculate": settings.retrieve and settings.calculate,
        "recall": settings.recall,
        "query": settings.graph and context.graph is not None and bool(context.graph.functions),
    }
    return [source for source, wanted in asked.items() if wanted]


def _asked(state: State) -> list[Literal["retrieve", "recall", "query", "aggregate"]]:
    """The sources that are asked side by side; the document is made at once where there are none."""
    return [each for each in state.sources if each != "calculate"] or ["aggregate"]


def _side_by_side(state: State) -> int:
    """How many nodes ask the model at the same time."""
    return len({"recall", "query"} & set(state.sources))


def _no_room(source: str) -> str:
    return f"{source} is missing: the budget has no room for it beside the answer."


METHOD = Method(
    name="hybrid-rag",
    line="ask pages, tables, a calculator, a knowledge graph and the model itself, then reason over all of it",
    paper="A hybrid RAG system with comprehensive enhancement on complex reasoning (Yuan et al., KDD Cup 2024)",
    when="the question comes with web pages, needs numbers worked out, or may rest on something false",
    calls="0 to 7; 7 on two hops",
    graph=graph,
    state=State,
    settings=Settings,
)
