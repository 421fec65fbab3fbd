"""Iter-RetGen: each search uses the previous generation (Shao et al., Findings of EMNLP 2023). A baseline.

    (retrieve -> answer)*

The number of iterations is fixed; each generation reads only the passages of its own search (section 3), and the last
one is the answer.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.context import CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import Generation, finish, generate, make_note
from sleuth.graphs.evidence.retrieval import search_once, short_names
from sleuth.tools.search import Mode


class Settings(CheckedSettings):
    """Settings of `--set`."""

    iterations: int = Field(default=3, ge=1, le=10, description="searches, each with what was generated before")
    top_k: int = Field(default=5, ge=1, le=100, description="passages of a search")
    mode: Annotated[Mode, InPaper("dense")] = Field(default="graph", description="how to search (paper: dense)")


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of Iter-RetGen. Attempts are keyed by their iteration as text, "1" first."""

    iteration: int = 0
    """The number of searches."""
    evidence: list[PassageRef] = field(default_factory=list)
    """Passages of the latest search."""
    attempts: Annotated[dict[str, Generation], Keyed] = field(default_factory=dict)
    """The generations."""


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search with the question, from the second time on with the latest generation too."""
    latest = _latest(state)
    generation = [latest["reason"], latest["answer"]] if latest else []
    names = short_names(note["finding"] for note in state.notes.values())
    text = " ".join([*filter(None, generation), state.question])
    references = await search_once(call, call.settings.query(text, entities=names))
    return {"iteration": state.iteration + 1, "evidence": references}


def _latest_note(state: State) -> list[Note]:
    latest = _latest(state)
    return [make_note(state.question, latest["answer"], latest["citations"])] if latest else []


@node_with(notes_at_halt=_latest_note)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Generate reasons and an answer from the passages of this search; the last answer is final."""
    call.require()
    passages = call.passages(state.evidence)
    new = await generate(call.model, state, passages, "This round has no answer.")
    update: Update = {"attempts": {str(state.iteration): new}}
    if state.iteration >= call.settings.iterations:
        return {**update, **finish(call.model, state, new["answer"], new["citations"])}
    return update


def after_answer(state: State) -> Literal["retrieve", "__end__"]:
    """Route to the next search, until the last answer."""
    return "__end__" if state.verdict else "retrieve"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, retrieve, answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_conditional_edges("answer", after_answer)
    add_evidence_check(graph, "answer")
    return graph


# What the nodes above are made of


def _latest(state: State) -> Generation | None:
    """Return the latest generation; between a search and its answer, the one before."""
    return next(reversed(state.attempts.values()), None)


METHOD = Method(
    name="iter-retgen",
    line="search, answer, search again with the answer, a fixed number of times",
    paper="Enhancing retrieval-augmented LLMs with iterative retrieval-generation synergy (Shao et al., 2023)",
    when="as a baseline of methods that search more than once, at a cost known beforehand",
    calls="3",
    graph=graph,
    settings=Settings,
    baseline=True,
)
