"""IRCoT: retrieval and a chain of thought alternate, a sentence at a time (Trivedi et al., ACL 2023). A baseline.

    (retrieve -> reason)* -> answer

Each sentence is the next query; the passages add up until a sentence gives the answer, and a reader answers from them
(section 3). The sentences are not notes: they are not verified.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.roles.reasoning import THINK, ThinkInput
from sleuth.graphs.core.answer import make_verdict
from sleuth.graphs.core.context import Ablation, CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method, summarize_update
from sleuth.graphs.core.node import Call, new_graph, node
from sleuth.graphs.core.state import Lines, PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.citations import find_support
from sleuth.graphs.evidence.outcomes import Generation, as_steps, finish, generate, make_note, stated_answer
from sleuth.graphs.evidence.retrieval import as_sources, make_query, search_once
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.tools.search import Mode
from sleuth.tools.text.tokenization import sentence_spans

_CONCLUSION = re.compile(r"\banswer is:?\s+(.+)", re.IGNORECASE)


class Settings(CheckedSettings):
    """Settings of `--set`; the numbers are the paper's (4 of its 2, 4, 6 or 8 passages)."""

    max_steps: int = Field(default=8, ge=1, le=20, description="sentences at most")
    top_k: int = Field(default=4, ge=1, le=50, description="passages found with a sentence")
    max_passages: int = Field(default=15, ge=1, le=100, description="passages collected at most")
    mode: Annotated[Mode, InPaper("keyword")] = Field(default="graph", description="how to search (paper: keyword)")
    reader: Annotated[bool, Ablation()] = Field(
        default=True, description="off: the answer in the last sentence is final"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of IRCoT: a chain of thought, and the passages that it has collected."""

    evidence: Annotated[list[PassageRef], Lines] = field(default_factory=list)
    """The passages so far."""
    thoughts: Annotated[list[str], Lines] = field(default_factory=list)
    """The sentences so far."""
    concluded: bool = False
    """The chain has reached its answer, or its end."""


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the question, later for the latest sentence, up to `max_passages` in total."""
    text = state.thoughts[-1] if state.thoughts else state.question
    references = await search_once(call, make_query(call.settings, text, state))
    new = [reference for reference in references if reference not in state.evidence]
    return {"evidence": new[: max(0, call.settings.max_passages - len(state.evidence))]}


@node
async def reason(state: State, call: Call[Settings]) -> Update:
    """Generate the next sentence; the last one gives the answer, repeats an earlier one, or uses up the steps."""
    call.require()
    passages = call.passages(state.evidence)
    request = ThinkInput(
        question=state.question,
        sources=as_sources(passages),
        known=as_steps(state.notes.values()),
        thoughts=tuple(state.thoughts),
    )
    reply = await call.model.ask_or(THINK, request, "", "The question is answered from what was found.")
    text = strip_marks(reply)
    thought = next((text[start:end] for start, end in sentence_spans(text, lines=False)), "")
    last = len(state.thoughts) + 1 >= call.settings.max_steps
    return {
        "thoughts": [thought] if thought else [],
        "concluded": last or thought in ("", *state.thoughts) or bool(_CONCLUSION.search(thought)),
    }


@node
async def answer(state: State, call: Call[Settings]) -> Update:
    """Let a reader answer with its own reasons, from all the passages (section 3, the question answering reader)."""
    passages, conclusion = call.passages(state.evidence), _conclusion(state)
    read = Generation(answer=conclusion, reason="", citations=find_support(conclusion, passages))
    settings = call.settings
    if state.halted or (settings.reader and not call.affords()):
        note = make_note(state.question, conclusion, read["citations"])
        return {"verdict": make_verdict("out_of_budget", conclusion, [note])}
    if settings.reader:
        read = await generate(call.model, state, passages, "The question stays open.")
    return finish(call.model, state, read["answer"], read["citations"])


# Routers


def after_reason(state: State) -> Literal["retrieve", "answer"]:
    """Route to the search with the latest sentence, until the last."""
    return "answer" if state.concluded or state.halted else "retrieve"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, retrieve, reason, answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "reason")
    graph.add_conditional_edges("reason", after_reason)
    add_evidence_check(graph, "answer")
    return graph


# What the nodes above are made of


def _conclusion(state: State) -> str:
    """Return the answer of the chain itself, if it states something."""
    match = _CONCLUSION.search(state.thoughts[-1]) if state.thoughts else None
    return stated_answer(match[1].strip(" .")) if match else ""


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    thoughts = [f"thought: {thought}" for thought in update.get("thoughts") or ()]
    return [*summarize_update(update), *thoughts]


METHOD = Method(
    name="ircot",
    line="reason a sentence at a time, and search with each sentence for what the next one needs",
    paper="Interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023)",
    when="as the usual baseline of multi-hop question answering",
    calls="3 to 7; 4 on two hops",
    graph=graph,
    settings=Settings,
    summarize_update=summarize,
    baseline=True,
)
