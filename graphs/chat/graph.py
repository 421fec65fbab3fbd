"""chat: a conversation about documents; every question in it is answered by a method in a thread of its own.

    classify -> converse (-> refine ...)?
    classify -> (clarify -> listen?)? -> refine? -> plan -> approve? -> act -> answer

A turn begins with a message of the person and ends with one of ours; the thread goes on with the next message. Where
it waits for the person (`listen`, `approve`) it can be resumed with a reply, or simply be sent another message.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BeforeValidator, Field, model_validator

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import conversation
from sleuth.graphs.chat import small_talk
from sleuth.graphs.chat.messages import Messages, asking_back, heard, reply
from sleuth.graphs.chat.plan_approval import Decision, decided, request
from sleuth.graphs.chat.question_rewriting import standalone
from sleuth.graphs.core import (
    Context,
    Hop,
    Method,
    MethodSettings,
    RunState,
    RunUpdate,
    Verdict,
    affordable,
    ask_or,
    cost_of,
    counted,
    delegate,
    desk,
    ended,
    from_json,
    settings_of,
)
from sleuth.graphs.methods.auto import new_hop
from sleuth.graphs.methods.par_rag import Step, plan_steps
from sleuth.graphs.methods.par_rag import graph as par_rag
from sleuth.tools.errors import UsageError

MethodName = Literal["auto", "plain-rag", "par-rag", "crp-rag", "retro-rag", "ras", "hybrid-rag"]


class Settings(MethodSettings):
    """What can be set with `--set`, and as an assistant's configuration."""

    method: MethodName = Field(default="auto", description="what answers the questions")
    method_settings: Annotated[dict[str, Any], BeforeValidator(from_json)] = Field(
        default={}, description='settings of that method, as JSON: {"coarse_k": 5}'
    )
    ask_back: bool = Field(default=True, description="an ambiguous question is asked back before it is looked up")
    approve_plan: bool = Field(
        default=False, description="the plan is shown, to be approved or edited, before it is carried out (par-rag)"
    )

    def nested(self) -> dict[str, dict[str, Any]]:
        """Return `method_settings`."""
        return {self.method: self.method_settings}

    @model_validator(mode="after")
    def _has_a_plan(self) -> "Settings":
        if self.approve_plan and self.method != "par-rag":
            raise ValueError(f"approve_plan: {self.method} has no plan beforehand, method must be par-rag")
        return self


@dataclass(frozen=True, kw_only=True)
class Message:
    """The input of a turn, as chat applications send it."""

    messages: Annotated[list[AnyMessage], Messages]
    """The conversation; what is sent is added to it, or replaces the message with its id."""


@dataclass(frozen=True, kw_only=True)
class State(Message, RunState):
    """The conversation, and of its latest turn what every run has."""

    question: str = ""
    """The latest message, from `refine` on as a question that can be understood alone."""
    warnings: list[str] = field(default_factory=list)
    """What went less than well in this turn, a line each."""
    kind: conversation.Intent | Literal[""] = ""
    """What the message was taken for."""
    hop: Hop | None = None
    """The turn of the method at the question."""
    plan: dict[str, Step] = field(default_factory=dict)
    """The steps of the method, where they have to be approved."""
    decision: Decision = ""
    """What became of the plan."""
    remark: str = ""
    """What the person said to the plan, or why that could not be used."""


Run = Runtime[Context]


class Update(RunUpdate, total=False):
    """What a node may change."""

    messages: list[AnyMessage]
    question: str
    kind: conversation.Intent
    hop: Hop | None
    plan: dict[str, Step]
    decision: Decision
    remark: str


async def classify(state: State, runtime: Run) -> Update:
    """A turn begins: what the message asks of us. A message is not asked back twice, nor is the reply to that."""
    message = state.messages[-1] if state.messages else None
    if not isinstance(message, HumanMessage) or not message.text.strip():
        raise UsageError("There is nothing to reply to: the conversation must end with a message of the person.")
    settings, question = settings_of(runtime, Settings), message.text.strip()
    begun = State(messages=state.messages, question=question)
    asking, kind = desk(begun, runtime), "question"
    halted = not affordable(begun, runtime)
    if not halted:
        loss = "The message is taken for a question."
        kind = await ask_or(asking, conversation.ROUTE, heard(begun.messages, question), "follow-up", loss)
    if small_talk.must_be_looked_up(kind, state.messages, ask_back=settings.ask_back):
        kind = "follow-up"
    return {
        **_AFRESH,
        "question": question,
        "kind": kind,  # type: ignore[typeddict-item]  # one of the role's choices
        "halted": halted,
        "notes": dict.fromkeys(state.notes),
        "calls": {**dict.fromkeys(state.calls), **asking.calls},  # type: ignore[dict-item]  # None removes a key
        "warnings": asking.warnings,
    }


async def converse(state: State, runtime: Run) -> Update:
    """Small talk, without looking anything up; what would have to state facts is a question."""
    if not affordable(state, runtime):
        return {"halted": True}
    asking = desk(state, runtime)
    verdict = await small_talk.converse(asking, heard(state.messages, state.question), state.messages)
    return {"verdict": verdict, **_spent(state, asking)}


async def clarify(state: State, runtime: Run) -> Update:
    """Asks back what an ambiguous question means; not if that would repeat it."""
    if not affordable(state, runtime):
        return {"halted": True}
    asking = desk(state, runtime)
    back = await small_talk.clarify(asking, heard(state.messages, state.question))
    if back is None:
        return _spent(state, asking)
    verdict = Verdict(status="waiting", text=back.question, citations=[])
    return {"messages": [asking_back(back)], "verdict": verdict, **_spent(state, asking)}


async def listen(state: State) -> Update:
    """Waits for the reply to that, a text; an empty one is waited for again."""
    asked = state.messages[-1]
    said = interrupt({"question": asked.text, "options": asked.additional_kwargs.get("options", [])})
    text = said.strip() if isinstance(said, str) else ""
    return {"messages": [HumanMessage(text)], "question": text, "verdict": None} if text else {}


async def refine(state: State, runtime: Run) -> Update:
    """A follow-up becomes a question that can be understood without the conversation."""
    turns = heard(state.messages, state.question).turns
    if turns and not affordable(state, runtime):
        return {"halted": True}
    asking = desk(state, runtime)
    question = await standalone(asking, state.question, turns)
    return {"question": question, "kind": "follow-up", **_spent(state, asking)}


async def plan(state: State, runtime: Run) -> Update:
    """Which method answers; where its plan has to be approved, also the plan."""
    settings = settings_of(runtime, Settings)
    hop = new_hop(settings.method, "as set")
    if not settings.approve_plan:
        return {"hop": hop}
    if not affordable(state, runtime, 2):  # one of them the method's at least
        return {"halted": True}
    asking = desk(state, runtime)
    of_method = par_rag.Settings.model_validate(settings.method_settings)
    steps = await plan_steps(state.question, {}, asking, planned=of_method.plan, side_by_side=of_method.parallel)
    return {"hop": hop, "plan": steps, **_spent(state, asking)}


async def approve(state: State) -> Update:
    """Waits until the plan is approved, edited or rejected."""
    found = decided(interrupt(request(state.question, state.plan, state.remark)), state.plan)
    return {"decision": found.decision, "plan": found.plan or state.plan, "remark": found.remark}


async def act(state: State, runtime: Run) -> Update:
    """The method answers the question in its own thread, with what is left of the budget."""
    settings, hop = settings_of(runtime, Settings), state.hop
    assert hop
    turn = sum(isinstance(message, HumanMessage) for message in state.messages)
    values = settings.method_settings
    end = await delegate(state, runtime, method=hop["method"], number=turn, values=values, plan=state.plan)
    return {
        "hop": ended(hop, end, list(end.notes)),
        "notes": {**end.notes},
        "calls": counted(hop["method"], end),
        "warnings": [*state.warnings, *end.warnings],
    }


async def answer(state: State) -> Update:
    """Our message: what the method has found, with footnotes, or what there is to say instead."""
    verdict, hop = state.verdict, state.hop
    if verdict is None and hop and hop["status"] != "new":
        verdict = Verdict(status=hop["status"], text=hop["text"], citations=hop["citations"])
    elif verdict is None and state.decision == "reject":
        verdict = Verdict(status="refused", text="The plan was not carried out.", citations=[])
    verdict = verdict or Verdict(status="out_of_budget", text="", citations=[])
    told = reply(verdict, hop, question=state.question, cost=cost_of(state.calls), warnings=state.warnings)
    return {"messages": [told], "verdict": verdict}


# Routers. A turn whose budget has no room for a node's calls is halted there, and ends with saying so.


def understand(state: State) -> Literal["converse", "clarify", "refine", "plan", "answer"]:
    """By what the message was taken for."""
    if state.halted:
        return "answer"
    match state.kind:
        case "small talk":
            return "converse"
        case "ambiguous":
            return "clarify"
        case "follow-up":
            return "refine"
    return "plan"


def send(state: State) -> Literal["refine", "answer"]:
    """The reply to small talk; without one the message is looked up."""
    return "answer" if state.halted or state.verdict else "refine"


def wait(state: State) -> Literal["listen", "refine", "answer"]:
    """For the reply, where something was asked back."""
    return "listen" if state.verdict and not state.halted else send(state)


def hear(state: State) -> Literal["refine", "listen"]:
    """On with a reply."""
    return "refine" if isinstance(state.messages[-1], HumanMessage) else "listen"


def look_up(state: State) -> Literal["plan", "answer"]:
    """On with a question."""
    return "answer" if state.halted else "plan"


def begin(state: State) -> Literal["approve", "act", "answer"]:
    """To the person where there is a plan to approve."""
    if state.halted:
        return "answer"
    return "approve" if state.plan else "act"


def carry_out(state: State) -> Literal["act", "approve", "answer"]:
    """What was decided; without a decision it is asked for again."""
    if state.decision == "reject":
        return "answer"
    return "act" if state.decision else "approve"


def graph() -> StateGraph[State, Context, Message, State]:
    """The state machine, not compiled."""
    graph = StateGraph(State, context_schema=Context, input_schema=Message)
    graph.add_node(classify)
    graph.add_node(converse)
    graph.add_node(clarify)
    graph.add_node(listen)
    graph.add_node(refine)
    graph.add_node(plan)
    graph.add_node(approve)
    graph.add_node(act)
    graph.add_node(answer)
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", understand)
    graph.add_conditional_edges("converse", send)
    graph.add_conditional_edges("clarify", wait)
    graph.add_conditional_edges("listen", hear)
    graph.add_conditional_edges("refine", look_up)
    graph.add_conditional_edges("plan", begin)
    graph.add_conditional_edges("approve", carry_out)
    graph.add_edge("act", "answer")
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of

_AFRESH: Update = {"verdict": None, "hop": None, "plan": {}, "decision": "", "remark": ""}


def _spent(state: State, asking: ModelCaller) -> Update:
    return {"calls": asking.calls, "warnings": [*state.warnings, *asking.warnings]}


METHOD = Method(
    name="chat",
    line="talk about the documents: what a message asks for is looked up by a method, in a thread of its own",
    paper="none: our way of having a conversation over the methods above",
    when="questions follow up on answers, and may have to be asked back",
    graph=graph,
    state=State,
    settings=Settings,
)
