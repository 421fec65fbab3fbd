"""Closed-book: the model's answer without a search (Roberts et al., EMNLP 2020). A baseline.

    answer

Inherited notes count as known; nothing else is read.
"""

from dataclasses import dataclass
from typing import Annotated

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.roles.inputs import StepsInput
from sleuth.agents.roles.reading import ANSWER_FROM_MEMORY, Unaided
from sleuth.graphs.core.context import CitedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node_with, nothing
from sleuth.graphs.core.state import Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import as_steps, finish, stated_answer


class Settings(CitedSettings):
    """Settings of `--set`; those marked "ours" are off under `profile=paper`."""

    may_not_know: Annotated[bool, InPaper(False)] = Field(
        default=True, description="ours: a guess is reported as unknown"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of the closed-book baseline: nothing beyond the common fields."""


@node_with(notes_at_halt=nothing)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Ask the question without any passage."""
    call.require()
    settings = call.settings
    request = StepsInput(question=state.question, known=as_steps(state.notes.values()))
    reply = await call.model.ask_or(ANSWER_FROM_MEMORY, request, Unaided(known=False), "The question stays open.")
    stands = reply.known or not settings.may_not_know
    return finish(call.model, state, stated_answer(reply.answer, state.question) if stands else "", [])


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, answer)
    graph.add_edge(START, "answer")
    add_evidence_check(graph, "answer")
    return graph


METHOD = Method(
    name="closed-book",
    line="answer from the model's own knowledge, without searching",
    paper="How much knowledge can you pack into the parameters of a language model? (Roberts et al., 2020)",
    when="you want to know what documents add to what the model knows by itself",
    calls="1",
    graph=graph,
    settings=Settings,
    baseline=True,
)
