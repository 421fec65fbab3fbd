"""Plain RAG: search once with the question, read, answer. The baseline that every method must beat.

    retrieve -> answer

Inherited notes are shown to the reader next to the passages.
"""

from dataclasses import dataclass, field
from typing import Annotated

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.graphs.core.context import CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node, node_with, nothing
from sleuth.graphs.core.state import PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import as_steps, finish, read_answer
from sleuth.graphs.evidence.retrieval import search_once, short_names
from sleuth.tools.search import Mode


class Settings(CheckedSettings):
    """Settings of `--set`."""

    top_k: int = Field(default=5, ge=1, le=100, description="passages to read")
    mode: Annotated[Mode, InPaper("hybrid")] = Field(default="graph", description="how to search (paper: hybrid)")


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of plain RAG: one search, one reading."""

    evidence: list[PassageRef] = field(default_factory=list)
    """Passages shown to the reader."""


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search the passages most similar to the question."""
    names = short_names(note["finding"] for note in state.notes.values())
    return {"evidence": await search_once(call, call.settings.query(state.question, entities=names))}


@node_with(notes_at_halt=nothing)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Read the passages and inherited notes once, and answer."""
    call.require()
    passages = call.passages(state.evidence)
    findings, loss = as_steps(state.notes.values()), "The question stays open."
    text, citations = await read_answer(call.model, state.question, passages, loss, findings=findings)
    return finish(call.model, state, text, citations)


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, retrieve, answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    add_evidence_check(graph, "answer")
    return graph


METHOD = Method(
    name="plain-rag",
    line="search once, read, answer",
    paper="the baseline of every comparison (Lewis et al., NeurIPS 2020)",
    when="one passage holds the answer, or as a baseline",
    calls="1",
    graph=graph,
    settings=Settings,
    baseline=True,
)
