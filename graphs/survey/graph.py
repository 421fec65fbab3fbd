"""survey: ask every document of a collection, check what it states, and count.

    plan -> approve? -> select -> (read each document -> verify)* -> aggregate -> answer

A step of `read` is one document, so a survey of 2,000 documents is 2,000 durable steps. Models name the columns, read
the documents and word the sentence of the answer; documents, figures and the table come from code. Given the question
again, a finished survey asks the documents that are new or have changed since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic import Field as Setting
from typing_extensions import TypedDict

from sleuth.agents.roles.inputs import QuestionInput, ReadInput
from sleuth.agents.roles.reading import READ, Reading
from sleuth.agents.roles.surveying import (
    MAX_COLUMNS,
    PLAN_SURVEY,
    WRITE_SURVEY,
    ColumnKind,
    FiguresInput,
    PlannedColumn,
    SurveyPlan,
    SurveySentence,
)
from sleuth.graphs.core.answer import Note, Status, Verdict, make_verdict
from sleuth.graphs.core.approval import AwaitsApproval, Reply, ask_approval, read_rows
from sleuth.graphs.core.context import CheckedSettings, Context
from sleuth.graphs.core.method import SURVEY, Method
from sleuth.graphs.core.node import Call, gather_by_key, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, Question, RunState, SharesBudget, Update
from sleuth.graphs.evidence.check import assess, is_answer_checked, least_support, require_checker
from sleuth.graphs.evidence.citations import verified_citations
from sleuth.graphs.evidence.outcomes import stated_answer
from sleuth.graphs.evidence.retrieval import as_sources, search_once
from sleuth.graphs.evidence.text_spans import numbers_in
from sleuth.graphs.survey.cells import (
    Cell,
    Column,
    Condition,
    Row,
    cell_text,
    figures_of,
    is_counted,
    meets,
    read_value,
)
from sleuth.tools.errors import UsageError
from sleuth.tools.search import DocumentLister, Query
from sleuth.tools.search.retriever import list_all
from sleuth.tools.text.markdown import markdown_table
from sleuth.tools.types import Passage

_SHOWN_ROWS = 20
"""Rows of the table in the answer's text; the whole table is in the field `table`."""
_NOT_READ = Reading(answerable=False)


class ColumnSetting(BaseModel):
    """A column as a person gives it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Setting(min_length=1, max_length=40)
    question: str = Setting(min_length=1, max_length=2_000)
    kind: ColumnKind = "text"


def _with_unique_names(columns: list[ColumnSetting]) -> list[ColumnSetting]:
    if len({each.name for each in columns}) < len(columns):
        raise ValueError("two columns have the same name")
    return columns


Columns = Annotated[
    list[ColumnSetting],
    AfterValidator(_with_unique_names),
    read_rows(lambda number: {"name": f"column {number}"}),
    Setting(max_length=MAX_COLUMNS),
]
"""Columns as JSON, or plain questions."""


class EditedColumns(TypedDict):
    """The columns to ask instead of those that were shown."""

    columns: Annotated[Columns, Setting(min_length=1)]


ColumnsReply = Reply[EditedColumns]


class Settings(CheckedSettings):
    """Settings of `--set`."""

    columns: Columns = Setting(
        default=[],
        description='columns as JSON: [{"name": "end", "question": "When does it end?", "kind": "date"}]; '
        "kind is text, number, date or yes-no; default: as a model plans them",
    )
    passages: int = Setting(default=8, ge=1, le=64, description="passages of a document that are read together")
    thorough: bool = Setting(
        default=False, description="read long documents whole, in pieces, instead of the passages that a search finds"
    )
    containing: str = Setting(
        default="", max_length=200, description="ask only documents that contain one of these words"
    )
    limit: int | None = Setting(default=None, ge=1, description="ask only the first documents")
    approve: bool = Setting(default=False, description="the planned columns wait for approval")
    batch: int = Setting(default=16, ge=1, le=500, description="documents that are asked in parallel")


class SurveyedDocument(TypedDict):
    """A document of the survey; `added_at` shows whether it has changed since."""

    title: str
    source: str
    added_at: str


@dataclass(frozen=True, kw_only=True)
class State(AwaitsApproval, RunState):
    """State of a survey."""

    columns: list[Column] = field(default_factory=list)
    """The columns, in their order."""
    conditions: list[Condition] = field(default_factory=list)
    """Conditions of the documents that count."""
    documents: Annotated[dict[str, SurveyedDocument], Keyed] = field(default_factory=dict)
    """The documents by id, in the order of the table."""
    skipped: int = 0
    """Documents that the settings leave out."""
    batch: list[str] = field(default_factory=list)
    """The documents that are asked next."""
    rows: Annotated[dict[str, Row], Keyed] = field(default_factory=dict)
    """What each document states, by its id."""
    counted: list[str] = field(default_factory=list)
    """The documents that meet the conditions."""
    figures: list[str] = field(default_factory=list)
    """What was counted, a line each."""


@dataclass(frozen=True, kw_only=True)
class ReadingState(SharesBudget, State):
    """Input of `read`: one document, with the question and the columns."""

    document: str = ""
    """Its id."""


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Name the columns, unless they are given, and the conditions of the documents that count."""
    if state.columns:  # a finished survey is updated
        return {"halted": False}
    if chosen := call.settings.columns:
        return {"columns": [each.model_dump() for each in chosen], "decision": "approve"}
    call.require()
    single = SurveyPlan(columns=[PlannedColumn(name="answer", question=state.question)])
    loss = "The question itself is asked of every document."
    planned = await call.model.ask_or(PLAN_SURVEY, QuestionInput(question=state.question), single, loss)
    columns = {each.name: each.model_dump() for each in planned.columns or single.columns}
    conditions: list[Condition] = []
    for each in planned.conditions:
        if each.column in columns and read_value(columns[each.column]["kind"], each.value) is not None:
            conditions.append(Condition(column=each.column, operator=each.operator, value=each.value))
        else:
            call.model.warn(f"The condition {each.column} {each.operator} {each.value} cannot be used.")
    decision = "" if call.settings.approve else "approve"
    return {"columns": [*columns.values()], "conditions": conditions, "decision": decision}


async def approve(state: State) -> Update:
    """Wait until the columns are approved, edited or rejected."""
    conditions = "".join(f"\nCounted: {line}" for line in map(_in_words, state.conditions))
    about = f"What each document is asked, for: {state.question}{conditions}"
    decision, edited = ask_approval(ColumnsReply, "ask_documents", {"columns": state.columns}, about)
    columns = [each.model_dump() for each in edited["columns"]] if edited else state.columns
    names = {each["name"] for each in columns}
    conditions_left = [each for each in state.conditions if each["column"] in names]
    return {"decision": decision, "columns": columns, "conditions": conditions_left}


@node
async def select(state: State, call: Call[Settings]) -> Update:
    """List the documents, and leave out those that need not be asked."""
    if state.halted:
        return {}
    documents = sorted(await list_all(_reader(call)), key=lambda each: (each.source, each.id))
    listed = {
        each.id: SurveyedDocument(title=each.title, source=each.source, added_at=each.added_at) for each in documents
    }
    chosen = await _containing(listed, call)
    chosen = dict([*chosen.items()][: call.settings.limit])
    gone: dict[str, SurveyedDocument | None] = {id: None for id in state.documents if id not in chosen}
    changed: dict[str, Row | None] = {id: None for id in state.rows if state.documents[id] != chosen.get(id)}
    update: Update = {"documents": {**gone, **chosen}, "rows": changed, "skipped": len(listed) - len(chosen)}
    left = [id for id in chosen if id not in state.rows or id in changed]
    return {**update, **_next_batch(left, state.columns, call)}


@node_with(reserved_calls=1, parallel_nodes=lambda state: state.sharing)
async def read(state: ReadingState, call: Call[Settings]) -> Update:
    """Ask a document for every column."""
    cells: dict[str, Cell] = {}
    for at, passages in enumerate(await _pieces(state, call)):
        if at and not call.affords(len(state.columns)):
            return {}  # the document remains unread, and the survey is halted
        sources = as_sources(passages)
        loss = f"It counts as not stated in {passages[0].title!r}."
        asked = {each["name"]: ReadInput(question=each["question"], sources=sources) for each in state.columns}
        readings = await gather_by_key(
            {name: call.model.ask_or(READ, request, _NOT_READ, loss) for name, request in asked.items()}
        )
        for column in state.columns:
            reading = readings[column["name"]]
            value = stated_answer(reading.answer) if reading.answerable else ""
            cites = verified_citations(call.model, value, reading.citations, passages, question=column["question"])
            cell = Cell(value=value, citations=cites)
            cells[column["name"]] = _merge(cells.get(column["name"]), cell, column["kind"])
    return {"rows": {state.document: cells or {each["name"]: Cell(value="", citations=[]) for each in state.columns}}}


@node
async def verify(state: State, call: Call[Settings]) -> Update:
    """Doubt what a document does not support, and what is not of the column's kind; choose the next documents."""
    rows: dict[str, Row | None] = {}
    needs_support = is_answer_checked(call.context, state.question) and least_support(call.settings, call.context) > 0
    for id in state.batch:
        if row := state.rows.get(id):
            passages = await _reader(call).passages_of(id) if needs_support else []
            checked = {each["name"]: await _checked(row[each["name"]], each, passages, call) for each in state.columns}
            rows |= {} if checked == row else {id: checked}
    left = [id for id in state.documents if id not in state.rows]
    return {"rows": rows, **_next_batch(left, state.columns, call)}


@node
async def aggregate(state: State, call: Call[Settings]) -> Update:
    """Count over the documents that meet the conditions."""
    kinds = {each["name"]: each["kind"] for each in state.columns}
    counted = [id for id in state.documents if id in state.rows and meets(state.rows[id], state.conditions, kinds)]
    figures = [f"documents asked: {len(state.rows)} of {len(state.documents)}"]
    figures += [f"documents left out by the settings: {state.skipped}"] if state.skipped else []
    if state.conditions:
        conditions = " and ".join(map(_in_words, state.conditions))
        figures.append(f"documents with {conditions}: {len(counted)}")
    rows = [state.rows[id] for id in counted]
    figures += [line for each in state.columns for line in figures_of(each, rows)]
    return {"counted": counted, "figures": figures}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Answer with a sentence and the table."""
    if state.decision == "reject":
        return {"verdict": Verdict(status="refused", text="The documents were not asked.", citations=[])}
    if not state.rows:
        return {"verdict": make_verdict("out_of_budget" if state.halted else "unknown", "", [])}
    sentence = await _sentence(state, call)
    listed = state.counted[:_SHOWN_ROWS]
    cells = [(column["question"], state.rows[id][column["name"]]) for id in listed for column in state.columns]
    notes = [
        Note(question=question, finding=cell["value"], passages=[], citations=cell["citations"])
        for question, cell in cells
        if is_counted(cell)
    ]
    has_values = any(is_counted(cell) for row in state.rows.values() for cell in row.values())
    status: Status = "out_of_budget" if state.halted else "answered" if has_values else "unknown"
    return {"verdict": make_verdict(status, f"{sentence}\n\n{_as_markdown(state, listed)}", notes)}


# Routers


def begin(state: State) -> Literal["approve", "select", "answer"]:
    """Route to the person, who approves the columns, or to the documents."""
    if state.decision == "reject" or state.halted:
        return "answer"
    return "select" if state.decision else "approve"


def read_batch(state: State) -> list[Send] | Literal["aggregate"]:
    """Send each document of the batch to `read`; without any, or at the end of the budget, route to `aggregate`."""
    if state.halted or not state.batch:
        return "aggregate"
    shared = {
        "question": state.question,
        "columns": state.columns,
        "sharing": len(state.batch),
        "spent": state.spending(),
    }
    return [Send("read", {**shared, "document": id}) for id in state.batch]


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, plan, approve, select, read, verify, aggregate, answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", begin)
    graph.add_conditional_edges("approve", begin)
    graph.add_conditional_edges("select", read_batch, ["read", "aggregate"])
    graph.add_edge("read", "verify")
    graph.add_conditional_edges("verify", read_batch, ["read", "aggregate"])
    graph.add_edge("aggregate", "answer")
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of


def _in_words(condition: Condition) -> str:
    return f"{condition['column']} {condition['operator']} {condition['value']}"


async def _containing(listed: dict[str, SurveyedDocument], call: Call[Settings]) -> dict[str, SurveyedDocument]:
    """Return the documents that contain one of the words of the setting; all without it."""
    if not (words := call.settings.containing.strip()):
        return listed
    hits = await call.context.retriever.search(Query(text=words, k=1_000_000, mode="keyword"))
    ids = {hit.passage.document_id for hit in hits}
    return {id: document for id, document in listed.items() if id in ids}


def _next_batch(left: Sequence[str], columns: Sequence[Column], call: Call[Settings]) -> Update:
    """Return the next documents that the budget has room for; if it has room for none, the run is halted."""
    batch = list(left[: call.settings.batch])
    while batch and not call.affords(len(batch) * len(columns) + 1):
        batch.pop()
    return {"batch": batch, "halted": True} if left and not batch else {"batch": batch}


async def _pieces(state: ReadingState, call: Call[Settings]) -> list[list[Passage]]:
    """Return what is read of a document: its passages together, or piece by piece."""
    most, passages = call.settings.passages, await _reader(call).passages_of(state.document)
    if len(passages) <= most or call.settings.thorough:
        return [passages[at : at + most] for at in range(0, len(passages), most)]
    text = " ".join(each["question"] for each in state.columns)
    query = call.settings.query(text, k=most, mode="hybrid", where=f'id="{state.document}"')
    ids = {each.id for each in call.passages(await search_once(call, query))}
    return [[each for each in passages if each.id in ids] or passages[:most]]


def _reader(call: Call[Settings]) -> DocumentLister:
    """Return the retriever, which can list and read its documents."""
    if not isinstance(call.context.retriever, DocumentLister):
        raise UsageError("A survey asks the documents of a collection: it cannot list those of this retriever.")
    return call.context.retriever


def _merge(before: Cell | None, new: Cell, kind: ColumnKind) -> Cell:
    """Return the cell of a document of which another piece was read; different values are in doubt, except texts."""
    if not before or not before["value"] or not new["value"]:
        return new if not before or not before["value"] else before
    citations = [*before["citations"], *new["citations"]]
    if read_value(kind, before["value"]) == read_value(kind, new["value"]):
        return {**before, "citations": citations}
    both = Cell(value=f"{before['value']}; {new['value']}", citations=citations)
    return both if kind == "text" else {**both, "doubt": "the document states several"}


async def _checked(cell: Cell, column: Column, passages: Sequence[Passage], call: Call[Settings]) -> Cell:
    """Return a cell with its doubt, if there is one."""
    if not cell["value"] or cell.get("doubt"):
        return cell
    if not cell["citations"]:
        return {**cell, "doubt": "no passage of the document contains it"}
    if read_value(column["kind"], cell["value"]) is None:
        return {**cell, "doubt": f"no {column['kind']}"}
    if passages:
        checker = require_checker(call.context.checker)
        support = await assess(checker, column["question"], cell["value"], cell["citations"], passages)
        if support["score"] < least_support(call.settings, call.context):
            return {**cell, "doubt": f"its sources support it too little ({support['score']:.2f})"}
    return cell


async def _sentence(state: State, call: Call[Settings]) -> str:
    """Return the sentence of the answer; the figures themselves if the model's has another number."""
    figures = "; ".join(state.figures) + "."
    if not call.affords():
        return figures
    loss = "The figures are shown as they are."
    request = FiguresInput(question=state.question, figures=tuple(state.figures))
    sentence = (await call.model.ask_or(WRITE_SURVEY, request, SurveySentence(sentence=""), loss)).sentence.strip()
    if not sentence or numbers_in(sentence) - numbers_in(figures) - numbers_in(state.question):
        return figures
    return sentence


def _as_markdown(state: State, ids: Sequence[str]) -> str:
    names = [each["name"] for each in state.columns]
    rows = [[state.documents[id]["title"], *(cell_text(state.rows[id][name]) for name in names)] for id in ids]
    left = len(state.counted) - len(ids)
    return markdown_table([["document", *names], *rows]) + (f"\n\n{left} more in the whole table." if left else "")


def read_table(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of a survey: its columns, conditions and figures, and a row for each document."""
    if not state.get("columns"):
        return None
    documents, rows, counted = state.get("documents", {}), state.get("rows", {}), set(state.get("counted", ()))
    return {
        "columns": state["columns"],
        "conditions": state.get("conditions", []),
        "figures": state.get("figures", []),
        "rows": [
            {"document": id, **about, "is_counted": id in counted, "cells": rows.get(id)}
            for id, about in documents.items()
        ],
    }


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    lines = [f"{each['name']}: {each['question']}" for each in update.get("columns") or []]
    lines += [f"documents: {len(update['documents'])}"] if update.get("documents") else []
    for row in filter(None, (update.get("rows") or {}).values()):
        lines += [f"{name}: {cell_text(cell)}" for name, cell in row.items()]
    return [*lines, *(update.get("figures") or [])]


METHOD = Method(
    name=SURVEY,
    line="ask every document the same questions, and count the answers",
    paper="none: ours",
    when="you ask about a whole collection: which, how many, how much in all",
    calls="one for each document and column",
    graph=graph,
    settings=Settings,
    approval=ColumnsReply,
    summarize_update=summarize,
    read_table=read_table,
)
