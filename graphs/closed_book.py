"""Closed-book: what the model says without searching (Roberts et al., EMNLP 2020). A baseline.

    answer

What another run has handed over counts as known; nothing else is read.
"""

from dataclasses import dataclass

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import Field

from sleuth.agents.answerer import ANSWER_FROM_MEMORY, MemoryInput, Unaided
from sleuth.graphs.evidence import clean, conclude, ended, known_steps
from sleuth.graphs.state import (
    Context,
    MethodSettings,
    Question,
    RunState,
    RunUpdate,
    affordable,
    ask_or,
    desk,
    settings_of,
)


class Settings(MethodSettings):
    """What can be set with `--set`; what is marked "ours" is off under `profile=paper`."""

    may_not_know: bool = Field(default=True, description="ours: a guess is reported as unknown")

    def as_in_paper(self) -> "Settings":
        """There is always an answer."""
        return self.model_copy(update={"may_not_know": False})


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """Nothing beyond what every method keeps."""


class Update(RunUpdate, total=False):
    """What the node may change."""


async def answer(state: State, runtime: Runtime[Context]) -> Update:
    """The question, asked at once."""
    if not affordable(state, runtime):
        return {"verdict": conclude("out_of_budget", "", [])}
    asking, settings = desk(state, runtime), settings_of(runtime, Settings)
    given = MemoryInput(question=state.question, known=known_steps(state.notes.values()))
    said = await ask_or(asking, ANSWER_FROM_MEMORY, given, Unaided(known=False), "The question stays open.")
    stands = said.known or not settings.may_not_know
    notes, verdict = ended(asking, state, clean(said.answer) if stands else "", [])
    return {"notes": notes, "verdict": verdict, "calls": asking.calls, "warnings": asking.warnings}


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph
