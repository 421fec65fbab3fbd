"""The hybrid system for CRAG: several sources, one careful reasoner over all of them (Yuan et al., KDD Cup 2024).

    classify the question by domain and change with time       section 4.2
    in parallel:
        retrieve texts and tables                              section 4.1
        calculate expressions over them                        section 4.3
        recall the model's own knowledge                       section 4.4
        query the knowledge graph                              section 4.5
    aggregate all into one reference document                  section 4.6
    answer along an outline                                    section 4.6
    verify the form, the premise and the citations             section 4.7

A question whose answer changes with time ends immediately. A source that fails, is slow, or has no room in the budget
is omitted with a warning; the budget always keeps a call for the answer. Each stage of the paper's ablation is a
setting.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from langgraph.graph import START, StateGraph

from sleuth.agents.formatting import ReferenceKind
from sleuth.agents.roles.hybrid import EXPRESS, RECALL_UNAIDED, Asked, ExpressInput, Expression, Recollection
from sleuth.agents.roles.judging import vote_on_attributes
from sleuth.graphs.core.answer import make_verdict
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.method import Method, summarize_update
from sleuth.graphs.core.node import Call, known_notes, new_graph, node, node_with
from sleuth.graphs.core.state import PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import make_note, verdict_for
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.graphs.methods.hybrid_rag import references, sources
from sleuth.graphs.methods.hybrid_rag.calculator import names
from sleuth.graphs.methods.hybrid_rag.question_attributes import (
    TRAINING,
    find_svm,
    packaged_examples,
    select_demonstrations,
)
from sleuth.graphs.methods.hybrid_rag.references import Document, Finding, ReasonedReply, Reference
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.graphs.methods.hybrid_rag.sources import PredictedAttributes
from sleuth.tools.errors import SleuthError, UsageError
from sleuth.tools.types import Passage

Source = Literal["retrieve", "calculate", "recall", "query"]


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of the hybrid system: the result of each source, and the document made of them."""

    asked_at: str = ""
    """The time of the question, as set; else the day of the run."""
    attributes: PredictedAttributes | None = None
    """The predicted attributes; None if they were not asked for."""
    refused: bool = False
    """The answer changes with time, and the sources are not known to be fresh."""
    sources: list[Source] = field(default_factory=list)
    """The sources to query, by node."""
    texts: list[PassageRef] = field(default_factory=list)
    """Passages of text, best first."""
    tables: list[PassageRef] = field(default_factory=list)
    """Passages of tables, best first."""
    calculations: list[Finding] = field(default_factory=list)
    """Expressions with their values."""
    recollection: Finding | None = None
    """The model's answer without any source."""
    lookups: list[Finding] = field(default_factory=list)
    """Calls to the knowledge graph with their results."""
    references: list[Reference] = field(default_factory=list)
    """The reference document: the shown part of each text in the archive."""
    said: ReasonedReply | None = None
    """The reasoner's answer."""
    unread: str = ""
    """The reasoner's reply if it could not be parsed, by archive reference."""


_ANSWER = 1
"""Calls reserved for the answer."""


def _side_by_side(state: State) -> int:
    """Return the number of nodes that call the model in parallel."""
    return len({"recall", "query"} & set(state.sources))


@node_with(reserved_calls=_ANSWER)
async def classify(state: State, call: Call[Settings]) -> Update:
    """Predict the question's attributes (section 4.2), and choose the sources to query."""
    settings, context = call.settings, call.context
    update: Update = {
        # The day alone: a time would change every prompt.
        "asked_at": state.asked_at or settings.asked_at.strip() or datetime.now(UTC).date().isoformat(),
        "sources": _sources(settings, context),
    }
    if not settings.attributes:
        return update
    takes_svm = settings.predictor == "svm"
    predictor = await asyncio.to_thread(find_svm, context.home, context.embedder) if takes_svm else None
    if not (predictor or call.affords(2 * settings.votes)):
        return {**update, "warnings": [_no_room("The model's vote on the question's attributes")]}
    if not predictor and takes_svm:
        call.model.warn(_NO_SVM)
    if predictor:
        predicted = await predictor.predict(state.question)
    else:
        demonstrations = select_demonstrations(await asyncio.to_thread(packaged_examples))
        predicted = await vote_on_attributes(call.model, state.question, demonstrations, samples=settings.votes)
    attributes = PredictedAttributes(domain=predicted.domain, dynamic=predicted.dynamic)
    return {**update, "attributes": attributes, "refused": predicted.dynamic and not settings.fresh}


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search texts and tables for the question, in the given pages or the collection (section 4.1)."""
    context, seconds = call.context, call.settings.source_seconds
    try:
        async with asyncio.timeout(seconds):
            texts, tables, left_out = await sources.find_passages(context, state.question, call.settings)
    except UsageError:  # a setting that a person can correct
        raise
    except (SleuthError, TimeoutError) as error:
        return {"warnings": [f"The search is missing: {str(error) or f'it took longer than {seconds:g} s'}"]}
    return {"texts": await call.archive(texts), "tables": await call.archive(tables), "warnings": left_out}


@node_with(reserved_calls=_ANSWER)
async def calculate(state: State, call: Call[Settings]) -> Update:
    """Evaluate expressions over the findings: no number is computed by the model (section 4.3)."""
    settings = call.settings
    if "calculate" not in state.sources:
        return {}
    if not call.affords(settings.expressions):
        return {"warnings": [_no_room("A calculation")]}
    labeled = sources.label_sources(call.passages(state.texts), call.passages(state.tables))
    request = ExpressInput(question=state.question, asked_at=state.asked_at, sources=labeled, functions=tuple(names()))
    loss = "One sample of an expression is missing."
    asks = (call.model.ask_or(EXPRESS, request, Expression(), loss) for _ in range(settings.expressions))
    expressions = [each.expression for each in await asyncio.gather(*asks)]
    findings, faults = sources.evaluate_expressions(expressions, sources.parse_day(state.asked_at))
    return {"calculations": findings, "warnings": faults}


@node_with(reserved_calls=_ANSWER, parallel_nodes=_side_by_side)
async def recall(state: State, call: Call[Settings]) -> Update:
    """Ask for the model's own knowledge, which may be wrong (section 4.4)."""
    if not call.affords():
        return {"warnings": [_no_room("The model's own knowledge")]}
    request, nothing = Asked(question=state.question, asked_at=state.asked_at), Recollection()
    reply = await call.model.ask_or(RECALL_UNAIDED, request, nothing, "The model's own knowledge is missing.")
    if reply is nothing:
        return {"recollection": None}
    text = "Invalid question" if reply.false_premise else strip_marks(reply.answer) if reply.known else ""
    return {"recollection": Finding(title="answered without sources", text=text or "I don't know")}


@node_with(reserved_calls=_ANSWER, parallel_nodes=_side_by_side)
async def query(state: State, call: Call[Settings]) -> Update:
    """Query the knowledge graph by one of two routes (section 4.5)."""
    graph = call.context.graph
    if graph is None or not call.affords():
        return {"warnings": [_no_room("The knowledge graph") if graph else "The knowledge graph was removed."]}
    asked = Asked(question=state.question, asked_at=state.asked_at)
    domain = state.attributes["domain"] if state.attributes else None
    findings, faults = await sources.query_graph(call.model, graph, asked, domain, call.settings)
    return {"lookups": findings, "warnings": faults}


@node
async def aggregate(state: State, call: Call[Settings]) -> Update:
    """Collect one reference document of limited length, and warn of what is cut."""
    settings, archive = call.settings, call.context.archive
    inherited = [
        Finding(title=each["question"], text=each["finding"]) for each in state.notes.values() if each["finding"]
    ]
    findings: dict[ReferenceKind, list[Finding]] = {
        "note": inherited,
        "graph": state.lookups,
        "expression": state.calculations,
        "model": [state.recollection] if state.recollection else [],
    }
    passages: dict[ReferenceKind, list[Passage]] = {
        "text": call.passages(state.texts),
        "table": call.passages(state.tables),
    }
    limits: dict[ReferenceKind, int] = {"table": settings.max_table_characters, "graph": settings.max_graph_characters}
    collected, losses = await references.collect(archive, findings, passages, limits, settings.max_characters)
    return {"references": collected, "warnings": losses}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer the question from all references, along an outline (section 4.6)."""
    call.require()
    settings, context = call.settings, call.context
    document = await Document.load(context.archive, state.references, context.pages)
    asked = Asked(question=state.question, asked_at=state.asked_at)
    samples = settings.answers if call.affords(settings.answers + 1) else 1
    warnings = [_no_room("The vote on several answers")] if samples < settings.answers else []
    reply, unread = await references.reason(call.model, asked, document.sources, settings, samples=samples)
    held = (await context.archive.keep([unread]))[0] if unread else ""
    return {"said": reply, "unread": held, "warnings": warnings}


@node_with(notes_at_halt=known_notes)
async def verify(state: State, call: Call[Settings]) -> Update:
    """Turn the reply into a verdict: its form, "I don't know", a false premise, its citations (section 4.7)."""
    settings, context = call.settings, call.context
    if state.refused:
        return {"verdict": make_verdict("unknown", "", []), "warnings": [_DYNAMIC]}
    if state.unread:
        call.require()
    document = await Document.load(context.archive, state.references, context.pages)
    unread = (await context.archive.load([state.unread]))[0] if state.unread else ""
    reply = state.said or await references.summarise(call.model, state.question, unread)
    status, text = references.outcome(reply, settings)
    if status != "answered":
        return {"notes": {}, "verdict": make_verdict(status, text, [])}
    citations = document.cite(call.model, reply, text, state.notes.values()) or document.support(text)
    note = make_note(state.question, text, citations)
    return {"notes": {"answer": note}, "verdict": verdict_for(call.model, text, [note])}


# Router. Sources that are not asked are passed by.


def after_classify(state: State) -> list[Literal["retrieve", "recall", "query", "aggregate", "verify"]]:
    """Route to all sources in parallel, or to the document if there is none, unless the question ends here."""
    if state.refused:
        return ["verify"]
    return [each for each in state.sources if each != "calculate"] or ["aggregate"]


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, classify, retrieve, calculate, recall, query)
    graph.add_node(aggregate, defer=True)  # waits for all sources that are queried
    graph.add_node(answer)
    graph.add_node(verify)
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", after_classify, ["retrieve", "recall", "query", "aggregate", "verify"])
    graph.add_edge("retrieve", "calculate")  # no router: LangGraph cuts one off if a parallel node fails
    graph.add_edge("calculate", "aggregate")
    graph.add_edge("recall", "aggregate")
    graph.add_edge("query", "aggregate")
    graph.add_edge("aggregate", "answer")
    graph.add_edge("answer", "verify")
    add_evidence_check(graph, "verify")
    return graph


# What the nodes above are made of

_NO_SVM = (
    "there is no SVM for the embedder: the model votes on the question's attributes "
    f"(`{TRAINING}` in a clone of sleuth trains one)"
)
_DYNAMIC = (
    "the answer changes with time, and the sources are not known to be up to date, so it is not given: "
    "where they are, ask again with --set fresh=true"
)


def _sources(settings: Settings, context: Context) -> list[Source]:
    """Return the sources that are switched on and available."""
    asked: dict[Source, bool] = {
        "retrieve": settings.retrieve,
        "calculate": settings.retrieve and settings.calculate,
        "recall": settings.recall,
        "query": settings.graph and context.graph is not None and bool(context.graph.functions),
    }
    return [source for source, is_wanted in asked.items() if is_wanted]


def _no_room(source: str) -> str:
    return f"{source} is missing: the budget has no room for it in addition to the answer."


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    about = update.get("attributes")
    recalled = update.get("recollection")
    counts = [(name, len(update[name])) for name in ("texts", "tables", "lookups", "references") if update.get(name)]
    return [
        *([f"{about['domain']}, {'dynamic' if about['dynamic'] else 'static'}"] if about else []),
        *(f"{name}: {count}" for name, count in counts),
        *(f"worked out: {finding['text']}" for finding in update.get("calculations") or ()),
        *([f"recalled: {recalled['text']}"] if recalled else []),
        *(f"! {line}" for line in update.get("warnings") or () if " is missing" in line),
        *summarize_update(update),
    ]


METHOD = Method(
    name="hybrid-rag",
    line="ask pages, tables, a calculator, a knowledge graph and the model itself, then reason over all of it",
    paper="A hybrid RAG system with comprehensive enhancement on complex reasoning (Yuan et al., KDD Cup 2024)",
    when="the question comes with web pages, needs numbers worked out, or may rest on something false",
    calls="0 to 7; 7 on two hops",
    graph=graph,
    settings=Settings,
    summarize_update=summarize,
)
