"""Iter-RetGen: the next search is made with what was generated last (Shao et al., Findings of EMNLP 2023). A baseline.

    (retrieve -> answer)*

A fixed number of times; each generation reads only the passages of its own search (section 3), and the last one is
the answer. Only a final answer to the same question that another run has handed over is read before the first search.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.graphs.core import (
    Call,
    Context,
    Keyed,
    Method,
    MethodSettings,
    Question,
    RunState,
    RunUpdate,
    retrieve_unless_settled,
    retrieve_until_verdict,
    summarize_attempts,
    summarize_common,
    summarize_evidence,
)
from sleuth.graphs.core.node import node
from sleuth.graphs.evidence import (
    Generation,
    finish,
    generate,
    load_passages,
    make_note,
    make_verdict,
    search_passages,
    short_names,
)
from sleuth.tools.search import Mode, Query


class Settings(MethodSettings):
    """What can be set with `--set`."""

    iterations: int = Field(default=3, ge=1, le=10, description="searches, each with what was generated before")
    top_k: int = Field(default=5, ge=1, le=100, description="passages of a search")
    mode: Mode = Field(default="graph", description="how to search (paper: dense)")

    def as_in_paper(self) -> "Settings":
        """Vector search."""
        return self.model_copy(update={"mode": "dense"})


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Attempts are keyed by their iteration as text; "0" had nothing but what was handed over."""

    iteration: int = 0
    """How often has been searched."""
    evidence: list[str] = field(default_factory=list)
    """Passages of the latest search, by archive reference."""
    attempts: Annotated[dict[str, Generation], Keyed] = field(default_factory=dict)
    """What was generated."""


class Update(RunUpdate, total=False):
    """What a node may change."""

    iteration: int
    evidence: list[str]
    attempts: dict[str, Generation]


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Passages for the question; from the second time on for what was generated last, and the question."""
    settings, latest = call.settings, _latest(state)
    said = [latest["reason"], latest["answer"]] if latest else []
    known = short_names(found["finding"] for found in state.notes.values())
    text = " ".join([*filter(None, said), state.question])
    query = Query(text=text, k=settings.top_k, mode=settings.mode, entities=known)
    return {"iteration": state.iteration + 1, "evidence": (await search_passages(call.context, {"": query}))[""]}


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Reasons and an answer from the passages of this search; the last one stands."""
    latest = _latest(state)
    if not call.affords():
        told = [make_note(state.question, latest["answer"], latest["citations"])] if latest else []
        return {"verdict": make_verdict("out_of_budget", latest["answer"] if latest else "", told)}
    shown = await load_passages(call.context.archive, state.evidence)
    new = await generate(call.model, state, shown, "This round has no answer.")
    update: Update = {"attempts": {str(state.iteration): new}}
    if state.iteration >= call.settings.iterations or (new["answer"] and not state.iteration):
        update["notes"], update["verdict"] = finish(call.model, state, new["answer"], new["citations"])
    return update


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(retrieve)
    graph.add_node(answer)
    graph.add_conditional_edges(START, retrieve_unless_settled)
    graph.add_edge("retrieve", "answer")
    graph.add_conditional_edges("answer", retrieve_until_verdict)
    return graph


# What the nodes above are made of


def _latest(state: State) -> Generation | None:
    """What the latest search has led to; on the way from a search to its answer, the one before."""
    return next(reversed(state.attempts.values()), None)


def summarize_update(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    return [*summarize_common(update), *summarize_evidence(update), *summarize_attempts(update)]


METHOD = Method(
    name="iter-retgen",
    line="search, answer, search again with the answer, a fixed number of times",
    paper="Enhancing retrieval-augmented LLMs with iterative retrieval-generation synergy (Shao et al., 2023)",
    when="as a baseline of methods that search more than once, at a cost known beforehand",
    calls="3",
    graph=graph,
    state=State,
    settings=Settings,
    summarize_update=summarize_update,
    baseline=True,
)
