"""Self-Ask: follow-up questions, each searched for and answered alone (Press et al., 2023). A baseline.

    (plan -> retrieve -> read)* -> plan -> answer

The paper's search engine gives intermediate answers (section 3); here a reader takes them from the passages. They are
the notes of the run; inherited notes count as asked already. With inherited notes, a run searches before it answers:
for the question itself if the model asks for nothing.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from pydantic import Field

from sleuth.agents.roles.inputs import StepsInput
from sleuth.agents.roles.planning import FOLLOW_UP, FollowUp
from sleuth.graphs.core.context import CheckedSettings, Context, InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.node import Call, check_budget, known_notes, new_graph, node, node_with
from sleuth.graphs.core.state import Keyed, Question, RunState, Update
from sleuth.graphs.evidence.check import add_evidence_check
from sleuth.graphs.evidence.outcomes import answer_question, as_steps, finish, make_note, read_answer, stated_answer
from sleuth.graphs.evidence.retrieval import Round, make_query, search_once
from sleuth.tools.search import Mode
from sleuth.tools.text.normalization import comparison_key


class Settings(CheckedSettings):
    """Settings of `--set`."""

    max_follow_ups: int = Field(default=5, ge=1, le=20, description="follow-up questions at most")
    top_k: int = Field(default=5, ge=1, le=100, description="passages to read for a follow-up question")
    mode: Annotated[Mode, InPaper("hybrid")] = Field(
        default="graph", description="how to search (paper: a web search engine, here hybrid)"
    )


@dataclass(frozen=True, kw_only=True)
class State(RunState):
    """State of Self-Ask. Rounds are keyed by their number as text; the note of round 1 is "follow-up 1"."""

    follow_up: str = ""
    """The follow-up question in progress; empty if no further one is needed."""
    rounds: Annotated[dict[str, Round], Keyed] = field(default_factory=dict)
    """The follow-up questions so far with their passages, "1" first."""
    final: str | None = None
    """The model's final answer; None if it was not asked for one."""


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Ask for the next follow-up question, or the final answer; no question is asked twice."""
    if len(state.rounds) >= call.settings.max_follow_ups:
        return {"follow_up": ""}
    call.require()
    request = StepsInput(question=state.question, known=as_steps(state.notes.values()))
    reply = await call.model.ask_or(FOLLOW_UP, request, FollowUp(follow_up="No"), "The question stays open.")
    update: Update = {"follow_up": reply.question.strip()}
    if reply.follow_up == "No":
        update = {"follow_up": "", "final": stated_answer(reply.answer, state.question)}
    elif comparison_key(reply.question) in {comparison_key(note["question"]) for note in state.notes.values()}:
        call.model.warn(f"The planner asked again {reply.question!r}: the question is answered with what was found.")
        update = {"follow_up": ""}
    if not update["follow_up"] and state.notes and not state.rounds:
        update = {"follow_up": state.question}
    return update


@node
async def retrieve(state: State, call: Call[Settings]) -> Update:
    """Search passages for the follow-up question."""
    references = await search_once(call, make_query(call.settings, state.follow_up, state))
    return {"rounds": {str(len(state.rounds) + 1): Round(query=state.follow_up, passages=references)}}


@node
async def read(state: State, call: Call[Settings]) -> Update:
    """Read the intermediate answer from these passages alone."""
    call.require()
    at = str(len(state.rounds))
    passages = call.passages(state.rounds[at]["passages"])
    loss = "This follow-up question has no answer."
    text, citations = await read_answer(call.model, state.follow_up, passages, loss)
    return {"notes": {f"follow-up {at}": make_note(state.follow_up, text, citations)}}


@node_with(notes_at_halt=known_notes)
async def answer(state: State, call: Call[Settings]) -> Update:
    """Return the model's final answer; if it has none, answer from the intermediate answers."""
    if state.final is not None:
        return finish(call.model, state, state.final, [])
    call.require()
    return {"verdict": await answer_question(call.model, state.question, list(state.notes.values()))}


# Routers


def after_plan(state: State) -> Literal["retrieve", "answer"]:
    """Route to the follow-up question, or to the end."""
    return "retrieve" if state.follow_up and not state.halted else "answer"


def graph() -> StateGraph[State, Context, Question, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(State, plan, retrieve, read, answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan)
    graph.add_edge("retrieve", "read")
    graph.add_conditional_edges("read", check_budget, {"left": "plan", "spent": "answer"})
    add_evidence_check(graph, "answer")
    return graph


METHOD = Method(
    name="self-ask",
    line="ask follow-up questions, search for the answer to each, until the question can be answered",
    paper="Measuring and narrowing the compositionality gap in language models (Press et al., 2023)",
    when="as a baseline of methods that break a question up on the way",
    calls="3 to 9; 5 on two hops",
    graph=graph,
    settings=Settings,
    baseline=True,
)
