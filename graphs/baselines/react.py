"""Agent: the model searches as often as it chooses, then answers (ReAct: Yao et al., ICLR 2023). A baseline.

    (act -> retrieve)* -> act -> answer

The loop of LangChain's prebuilt agent with our search as its only tool (a test compares both), as a graph of ours:
every step has its checkpoint and every call its record. With `tools=three` it has those of A-RAG (Du et al., 2026):
keyword search, semantic search, and reading the passages around one. With inherited notes, a run searches before
it answers: for the question itself if the model asks for nothing.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.role import Role
from sleuth.agents.roles.planning import ACT, ACT_WITH_TOOLS, ActInput, Action, SearchResult, ToolAction
from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.context import CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, new_graph, node, node_with, nothing
from sleuth.graphs.core.state import Keyed, PassageRef, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.citations import verified_citations
from sleuth.graphs.evidence.outcomes import as_steps, finish, generate, make_note, stated_answer
from sleuth.graphs.evidence.retrieval import Round, make_query, read_around, search_once
from sleuth.tools.search import Mode
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.types import Passage

Tool = Literal["search", "keyword", "semantic", "read"]
"""With one tool a round's query is that of the search; with three it begins with the tool."""


class Settings(CheckedSettings):
    """Settings of `--set`."""

    max_searches: int = Field(default=10, ge=1, le=30, description="searches at most; then it has to answer")
    top_k: int = Field(default=5, ge=1, le=50, description="passages that a search returns")
    mode: Annotated[Mode, InPaper("hybrid")] = Field(
        default="graph", description="how the tool searches (paper profile: hybrid)"
    )
    tools: Literal["search", "three"] = Field(
        default="search", description="three: keyword search, semantic search by `mode`, and reading on (A-RAG)"
    )
    reach: int = Field(default=1, ge=1, le=5, description="with `tools=three`: passages read before and after one")


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of the agent. Rounds are the tool's calls, keyed by their number as text."""

    query: str = ""
    """The tool's next query; empty if the model has answered or may not search any more."""
    tool: Tool = "search"
    """The tool of this query."""
    near: PassageRef = ""
    """The passage to read around; empty for a search."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The searches so far with what they returned, "1" first."""
    said: Note | None = None
    """The model's answer with its verified citations; None before that."""


@node
async def act(state: State, call: Call[Settings]) -> Update:
    """Let the model choose to search or to answer; a repeated search ends the searching."""
    if len(state.rounds) >= call.settings.max_searches:
        return {"query": ""}
    call.require()
    first = _searches_by_passage(state)
    passages = call.passages(first)
    request = _act_input(state, passages, list(first.values()))
    asked = {comparison_key(query) for query in request.searches}
    role: Role[ActInput, Any] = ACT if call.settings.tools == "search" else ACT_WITH_TOOLS
    nothing = Action(action="answer") if role is ACT else ToolAction(action="answer")
    reply: Action | ToolAction = await call.model.ask_or(role, request, nothing, "The question stays open.")
    update = _next_step(reply, [*first], passages)
    if reply.action == "answer" and state.notes and not state.rounds:
        update = {"query": state.question, "tool": "search" if call.settings.tools == "search" else "semantic"}
    elif reply.action == "answer":
        text = stated_answer(reply.answer, state.question)
        citations = verified_citations(call.model, text, reply.citations, passages, question=state.question)
        update = {"query": "", "said": make_note(state.question, text, citations)}
    elif not update["query"]:
        call.model.warn("The agent would read around a source that was not shown: it answers from what was found.")
    elif comparison_key(label := _label(update["tool"], update["query"])) in asked:
        call.model.warn(f"The agent searched again for {label!r}: the question is answered from what was found.")
        update = {"query": ""}
    return update


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Run the tool: search passages for the query, or read those around one."""
    settings, at = call.settings, str(len(state.rounds) + 1)
    if state.tool == "read":
        references = await read_around(call, state.near, reach=settings.reach)
    else:
        about = {"mode": "keyword"} if state.tool == "keyword" else {}
        references = await search_once(call, make_query(settings, state.query, state, **about))
    return {"rounds": {at: Round(query=_label(state.tool, state.query), passages=references)}}


@node_with(notes_at_halt=nothing)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Return the model's answer; if it has none, generate one from all passages."""
    if state.said is not None:
        return finish(call.model, state, state.said["finding"], state.said.get("citations", []))
    call.require()
    passages = call.passages(_searches_by_passage(state))
    read = await generate(call.model, state, passages, "The question stays open.")
    return finish(call.model, state, read["answer"], read["citations"])


# Router


def after_act(state: State) -> Literal["retrieve", "answer"]:
    """Route to the tool, or to the end."""
    return "retrieve" if state.query and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, act, retrieve, answer)
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", after_act)
    graph.add_edge("retrieve", "act")
    add_evidence_check(graph, "answer")
    return graph


# What the nodes above are made of


def _next_step(reply: Action | ToolAction, references: list[str], passages: list[Passage]) -> Update:
    """Return the step that the model chose; its query is empty if it names a source that was not shown."""
    if reply.action == "answer":
        return {"query": "", "tool": "search", "near": ""}
    if not isinstance(reply, ToolAction) or reply.action != "read":
        return {"query": reply.query.strip(), "tool": reply.action, "near": ""}
    if reply.source > len(passages):
        return {"query": "", "tool": "read", "near": ""}
    at = reply.source - 1
    return {"query": f"{passages[at].title} [{reply.source}]", "tool": "read", "near": references[at]}


def _label(tool: Tool, query: str) -> str:
    """Return how a step is shown to the model: with one tool only its query."""
    return query if tool == "search" else f"{tool}: {query}"


def _searches_by_passage(state: State) -> dict[str, int]:
    """Return every passage by its archive reference, with the number of the search that found it first."""
    first: dict[str, int] = {}
    for at, round in state.rounds.items():
        for reference in round["passages"]:
            first.setdefault(reference, int(at))
    return first


def _act_input(state: State, passages: list[Passage], searches: list[int]) -> ActInput:
    results = (
        SearchResult(title=each.title, text=each.text, search=at) for each, at in zip(passages, searches, strict=True)
    )
    return ActInput(
        question=state.question,
        known=as_steps(state.notes.values()),
        searches=tuple(round["query"] for round in state.rounds.values()),
        sources=tuple(results),
    )


METHOD = Method(
    name="agent",
    line="a model with the search as its tool, which searches as often as it chooses and then answers",
    paper="ReAct: synergizing reasoning and acting in language models (Yao et al., ICLR 2023)",
    when="as the baseline of methods whose steps are laid down: here the model alone decides",
    calls="2 to 5; 3 on two hops",
    graph=graph,
    settings=Settings,
    baseline=True,
)
