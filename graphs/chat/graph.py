"""chat: a conversation about documents; every question in it is answered by a method in a thread of its own.

    classify -> converse (-> refine ...)?
    classify -> (clarify -> listen?)? -> refine? -> plan -> approve? -> act -> answer

A turn begins with a message of the person and ends with one of ours; the next message continues the thread. While it
waits for the person (`listen`, `approve`) it can be resumed with a reply, or receive another message.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import Field, model_validator

from sleuth.agents.llm.tracing import as_usage
from sleuth.agents.roles import conversation, planning
from sleuth.graphs.chat.messages import Messages, TextReply, answer_message, reply_id
from sleuth.graphs.chat.question_rewriting import as_conversation, make_standalone
from sleuth.graphs.chat.references import refers_back, resolve_references
from sleuth.graphs.chat.small_talk import REPLIES, is_answered_by_rule, reply_by_rule
from sleuth.graphs.core.answer import Subrun, Verdict, total_cost
from sleuth.graphs.core.answer_stream import AnswerStream
from sleuth.graphs.core.approval import AwaitsApproval, Reply, ask_approval, read_rows
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.method import CHAT, Method, summarize_update
from sleuth.graphs.core.node import Call, check_budget, new_graph, node
from sleuth.graphs.core.state import RunState, Update, same_question
from sleuth.graphs.core.subrun import new_subrun, prefix_nodes, run_subrun, verdict_of, with_result
from sleuth.graphs.delegation import DelegatingSettings
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.evidence.text_spans import content_words
from sleuth.graphs.methods.par_rag.graph import plan_with
from sleuth.graphs.methods.par_rag.steps import Step, number_steps
from sleuth.graphs.registry import METHODS
from sleuth.tools.errors import UsageError


class Settings(DelegatingSettings):
    """Settings of `--set`, and of an assistant's configuration."""

    ask_back: bool = Field(
        default=True, description="ask for clarification of an ambiguous question before looking it up"
    )
    approve_plan: bool = Field(
        default=False, description="the plan is shown, to be approved or edited, before it is carried out (par-rag)"
    )

    @model_validator(mode="after")
    def _has_a_plan(self) -> "Settings":
        if self.approve_plan and self.method != "par-rag":
            raise ValueError(f"approve_plan: {self.method} has no plan beforehand, method must be par-rag")
        return self


class EditedPlan(planning.Plan):
    """Steps as they were shown; one without `needs`, such as a plain question, builds on the one before."""

    steps: Annotated[list[planning.PlanStep], read_rows(lambda at: {"needs": [at - 1][at == 1 :]})] = Field(
        min_length=1, max_length=planning.MAX_STEPS
    )


PlanReply = Reply[EditedPlan]


@dataclass(frozen=True, kw_only=True)
class Message:
    """The input of a turn, in the form of chat applications."""

    messages: Annotated[list[AnyMessage], Messages]
    """The conversation; a new message is added to it, or replaces the message with its id."""


@dataclass(frozen=True, kw_only=True)
class State(AwaitsApproval, Message, RunState):
    """State of a chat: the conversation, and the common fields of its latest turn."""

    question: str = ""
    """The latest message; after `refine`, a question that can be understood alone."""
    warnings: list[str] = field(default_factory=list)
    """Problems of this turn, a line each."""
    kind: conversation.Intent | Literal[""] = ""
    """The kind of the message."""
    hop: Subrun | None = None
    """The run of the method for the question."""
    plan: dict[str, Step] = field(default_factory=dict)
    """The steps of the method, if they have to be approved."""


@node
async def classify(state: State, call: Call[Settings]) -> Update:
    """Start a turn: classify the message, which is clarified at most once, as is the reply to a clarification."""
    message = state.messages[-1] if state.messages else None
    if not isinstance(message, HumanMessage) or not message.text.strip():
        raise UsageError("There is nothing to reply to: the conversation must end with a message of the person.")
    question, kind = message.text.strip(), "small talk"
    call.state = State(messages=state.messages, question=question)  # what was spent on earlier turns does not count
    needs_model = not is_answered_by_rule(question) and METHODS[call.settings.method].needs_model
    halted = needs_model and not call.affords()
    if not halted:
        kind = await _kind_of(as_conversation(state.messages, question), call)
    if kind == "ambiguous" and not (call.settings.ask_back and not _already_clarified(state.messages)):
        kind = "follow-up"
    return {
        "verdict": None,
        "hop": None,
        "plan": {},
        "decision": "",
        "question": question,
        "kind": kind,
        "halted": halted,
        "notes": dict.fromkeys(state.notes),
        "calls": dict.fromkeys(state.calls),
        "warnings": [],
    }


@node
async def converse(state: State, call: Call[Settings]) -> Update:
    """Reply to a command, or to small talk with a fixed sentence, unless a search is needed after all."""
    if verdict := reply_by_rule(state.question, call.settings.method, state.messages):
        return {"verdict": verdict}
    made = conversation.SmallTalk()
    if _uses_model(call):
        call.require()
        made = await call.model.ask_or(conversation.REPLY, as_conversation(state.messages, state.question), made, "")
        if made.needs_search:
            return {"verdict": None}
    return {"verdict": Verdict(status="answered", text=REPLIES[made.reply], citations=[])}


@node
async def clarify(state: State, call: Call[Settings]) -> Update:
    """Ask what an ambiguous question means, unless that would only repeat it."""
    call.require()
    call.model.streams = None
    otherwise = conversation.AskedBack(question="What do you mean by that?")
    request = as_conversation(state.messages, state.question)
    back = await call.model.ask_or(conversation.ASK_BACK, request, otherwise, "")
    asked = content_words(state.question)
    if asked <= content_words(back.question) if len(asked) > 1 else same_question(back.question, state.question):
        call.model.warn("The clarifying question would have repeated the message: the message is looked up.")
        return {}
    about = {"status": "waiting", "asked_back": True, "options": back.options}
    return {
        "messages": [AIMessage(back.question, additional_kwargs=about)],
        "verdict": Verdict(status="waiting", text=back.question, citations=[]),
    }


async def listen(state: State, runtime: Runtime[Context]) -> Update:
    """Wait for the reply to a clarifying question; small talk is replied to meanwhile."""
    settings = runtime.context.settings
    assert isinstance(settings, Settings)
    asked = next(message for message in reversed(state.messages) if message.additional_kwargs.get("asked_back"))
    request = {"question": asked.text, "options": asked.additional_kwargs.get("options", [])}
    text: str = interrupt(request, response_schema=TextReply)
    if reply := reply_by_rule(text, settings.method, state.messages):
        about = {"status": reply["status"], "citations": reply["citations"]}
        return {"messages": [HumanMessage(text), AIMessage(with_footnotes(reply).text, additional_kwargs=about)]}
    return {"messages": [HumanMessage(text)], "question": text, "verdict": None}


@node
async def refine(state: State, call: Call[Settings]) -> Update:
    """Rewrite a follow-up as a question that can be understood without the conversation."""
    turns, model = as_conversation(state.messages, state.question).turns, call.model if _uses_model(call) else None
    if turns and model:
        call.require()
    return {"question": await make_standalone(model, state.question, turns), "kind": "follow-up"}


@node
async def plan(state: State, call: Call[Settings]) -> Update:
    """Choose the method; if its plan has to be approved, also make the plan and show it in a message."""
    settings = call.settings
    subrun = new_subrun(settings.method, "as set")
    if not settings.approve_plan:
        return {"hop": subrun}
    call.require(2)  # the plan, and at least one call of the method
    steps = await plan_with(state.question, call.model, settings.method_settings)
    listed = "\n".join(f"{number}. {step['question']}" for number, step in enumerate(steps.values(), start=1))
    # agent-chat-ui shows a request for approval only below a message of ours. The answer replaces this one.
    text, id = f"The steps to answer: {state.question}\n\n{listed}", reply_id(state.messages)
    message = AIMessage(text, id=id, additional_kwargs={"status": "waiting"})
    return {"hop": subrun, "plan": steps, "messages": [message]}


async def approve(state: State) -> Update:
    """Wait until the plan is approved, edited or rejected."""
    steps = [
        {"question": step["question"], "needs": [int(need) for need in step["needs"]], "action": step["action"]}
        for step in state.plan.values()
    ]
    about = f"The steps to answer: {state.question}\n`needs` are the numbers of the steps that one builds on, from 1."
    decision, edited = ask_approval(PlanReply, "carry_out_plan", {"steps": steps}, about)
    return {"decision": decision, "plan": number_steps(edited.steps) if edited else state.plan}


@node
async def act(state: State, call: Call[Settings]) -> Update:
    """Answer the question with the method, in its own thread, with the rest of the budget."""
    subrun, stream = state.hop, AnswerStream(reply_id(state.messages))
    assert subrun
    turn = sum(isinstance(message, HumanMessage) for message in state.messages)
    values = call.settings.method_settings
    end = await run_subrun(call, method=subrun["method"], number=turn, values=values, plan=state.plan, answer=stream)
    calls, warnings = prefix_nodes(subrun["method"], end), [*state.warnings, *end.warnings]
    subrun = with_result(subrun, end, list(end.notes))
    if stream.has_text or state.plan:  # LangGraph's stream would skip the message if it replaces the plan
        stream.finish(_reply(replace(state, hop=subrun, calls={**state.calls, **calls}, warnings=warnings))[0])
    return {"hop": subrun, "notes": {**end.notes}, "calls": calls, "warnings": warnings}


async def answer(state: State) -> Update:
    """Write our message: the method's answer with footnotes, or why there is none."""
    message, verdict = _reply(state)
    if state.decision == "reject":  # as above
        AnswerStream().finish(message)
    return {"messages": [message], "verdict": verdict}


def _reply(state: State) -> tuple[AIMessage, Verdict]:
    """Return the message that ends the turn, and its verdict; its usage is that of all model calls of the turn.

    Citations and origin are in `additional_kwargs`.
    """
    verdict, cost = state.verdict, total_cost(state.calls)
    subrun = state.hop if state.hop and state.hop["status"] != "queued" else None
    if verdict is None and subrun:
        verdict = verdict_of(subrun)
    elif verdict is None and state.decision == "reject":
        verdict = Verdict(status="refused", text="The plan was not carried out.", citations=[])
    verdict = verdict or Verdict(status="out_of_budget", text="", citations=[])
    about = {
        "status": verdict["status"],
        "citations": verdict["citations"],
        "question": state.question,
        "method": state.hop["method"] if state.hop else "",
        "thread": state.hop["thread"] if state.hop else "",
        "cost": cost,
        "warnings": state.warnings,
    }
    message = answer_message(verdict, about, id=reply_id(state.messages), usage=as_usage(**cost))
    return message, verdict


# Routers


def understand(state: State) -> Literal["converse", "clarify", "refine", "plan", "answer"]:
    """Route by the kind of the message."""
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
    """Route to the reply to small talk; without one the message is looked up."""
    return "answer" if state.verdict or state.halted else "refine"


def wait(state: State) -> Literal["listen", "refine", "answer"]:
    """Route to the reply of the person after a clarifying question."""
    if state.halted:
        return "answer"
    return "listen" if state.verdict else "refine"


def hear(state: State) -> Literal["refine", "listen"]:
    """Route to the question after a reply."""
    return "refine" if isinstance(state.messages[-1], HumanMessage) else "listen"


def begin(state: State) -> Literal["approve", "act", "answer"]:
    """Route to the person if there is a plan to approve."""
    if state.halted:
        return "answer"
    return "approve" if state.plan else "act"


def carry_out(state: State) -> Literal["act", "answer"]:
    """Route by the decision."""
    return "answer" if state.decision == "reject" else "act"


def graph() -> StateGraph[State, Context, Message, State]:
    """Return the uncompiled state machine."""
    graph = new_graph(
        State, classify, converse, clarify, listen, refine, plan, approve, act, answer, input_schema=Message
    )
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", understand)
    graph.add_conditional_edges("converse", send)
    graph.add_conditional_edges("clarify", wait)
    graph.add_conditional_edges("listen", hear)
    graph.add_conditional_edges("refine", check_budget, {"left": "plan", "spent": "answer"})
    graph.add_conditional_edges("plan", begin)
    graph.add_conditional_edges("approve", carry_out)
    graph.add_edge("act", "answer")
    graph.add_edge("answer", END)
    return graph


# What the nodes above are made of


async def _kind_of(request: conversation.ConversationInput, call: Call[Settings]) -> str:
    """Return the kind of a message; rules decide where there is no model, and correct what it overlooks."""
    question = request.question
    if is_answered_by_rule(question):
        return "small talk"
    if not _uses_model(call):
        needs_search = _has_subject(question) or resolve_references(question, request.turns) != question
        return "follow-up" if needs_search else "small talk"
    kind = await call.model.ask_or(conversation.ROUTE, request, "follow-up", "The message is taken for a question.")
    return "follow-up" if kind == "question" and request.turns and refers_back(question) else kind


def _uses_model(call: Call[Settings]) -> bool:
    """Return whether a model is to classify and rewrite messages: not for a method without one, nor the demo model."""
    return METHODS[call.settings.method].needs_model and not call.context.demo


def _has_subject(message: str) -> bool:
    """Return whether a part of a message asks with a content word, or has a name, a number or three content words."""
    for part in re.findall(r"[^,;:.!?？؟]+[?？؟]?", message):
        asks = part[-1] in "?？؟" or re.match(r"\W*(?:who|what|when|where|which|why|how)\b", part, re.IGNORECASE)
        words = 1 if asks else 3
        if len(content_words(part)) >= words or re.search(r"\s(?!I\b)[A-Z]|\d", part.strip()):
            return True
    return False


def _already_clarified(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the last message replies to a clarifying question, or was followed by one before."""
    *before, latest = messages
    clarifying = [at for at, message in enumerate(before) if message.additional_kwargs.get("asked_back")]
    return any(at == len(before) - 1 or same_question(before[at - 1].text, latest.text) for at in clarifying)


def summarize(update: Mapping[str, Any]) -> list[str]:
    """Return lines that describe the update of a node."""
    if "kind" in update:  # the beginning of a turn, or a rewritten question
        return summarize_update({**update, "notes": {}})
    reply = [f"understood as: {update['question']}"] if "question" in update else []
    return [*reply, *summarize_update(update)]


METHOD = Method(
    name=CHAT,
    line="talk about the documents: a method answers each question, in a thread of its own",
    paper="none: our way of having a conversation over the methods above",
    when="questions follow up on answers, and may need clarification",
    graph=graph,
    settings=Settings,
    approval=PlanReply,
    summarize_update=summarize,
)
