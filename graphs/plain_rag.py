"""Plain RAG: search once with the question, read, answer. The baseline that every method must beat.

    retrieve -> answer

What another run has handed over is read first, and nothing is searched for if that is enough.
"""

from dataclasses import dataclass, field
from typing import Literal

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from pydantic import Field

from sleuth.agents.reader import READ, Reading, ReadInput
from sleuth.graphs.evidence import (
    cited,
    clean,
    conclude,
    ended,
    find,
    known_steps,
    load,
    names_in,
    sources,
)
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
from sleuth.tools.retriever import Mode, Query


class Settings(MethodSettings):
    """What can be set with `--set`."""

    top_k: int = Field(default=5, ge=1, le=100, description="passages to read")
    mode: Mode = Field(default="graph", description="how to search (paper: hybrid)")

    def as_in_paper(self) -> "Settings":
        """Search by words and meaning."""
        return self.model_copy(update={"mode": "hybrid"})


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """One search, one reading."""

    evidence: list[str] = field(default_factory=list)
    """Passages shown to the reader, by archive reference."""
    searched: bool = False
    """Whether they were looked for; what was handed over is read before."""


class Update(RunUpdate, total=False):
    """What a node may change."""

    evidence: list[str]
    searched: bool


async def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """The passages most like the question."""
    settings = settings_of(runtime, Settings)
    known = names_in(found["finding"] for found in state.notes.values())
    query = Query(text=state.question, k=settings.top_k, mode=settings.mode, entities=known)
    return {"evidence": (await find(runtime.context, {"": query}))[""], "searched": True}


async def answer(state: State, runtime: Runtime[Context]) -> Update:
    """One reading of them, together with what was handed over as known."""
    if not affordable(state, runtime):
        return {"verdict": conclude("out_of_budget", "", [])}
    asking, shown = desk(state, runtime), await load(runtime.context.archive, state.evidence)
    given = ReadInput(question=state.question, sources=sources(shown), known=known_steps(state.notes.values()))
    read = await ask_or(asking, READ, given, Reading(answerable=False), "The question stays open.")
    text = clean(read.answer) if read.answerable else ""
    if not (text or state.searched):
        return {"calls": asking.calls, "warnings": asking.warnings}
    notes, verdict = ended(asking, state, text, cited(asking, text, read.citations, shown))
    return {"notes": notes, "verdict": verdict, "calls": asking.calls, "warnings": asking.warnings}


# Routers


def begin(state: State) -> Literal["retrieve", "answer"]:
    """What was handed over may be enough."""
    return "answer" if state.notes else "retrieve"


def after_answer(state: State) -> Literal["retrieve", "__end__"]:
    """To the search, where it was not."""
    return "__end__" if state.verdict else "retrieve"


def graph() -> StateGraph[State, Context, Question, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Question)
    graph.add_node(retrieve)
    graph.add_node(answer)
    graph.add_conditional_edges(START, begin)
    graph.add_edge("retrieve", "answer")
    graph.add_conditional_edges("answer", after_answer)
    return graph
