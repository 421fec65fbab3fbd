"""The turns of a chat as they are stored and sent: the next input of a thread, and its messages at any moment."""

import json
import uuid
from itertools import pairwise
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, convert_to_messages
from langgraph.types import Command, StateSnapshot
from pydantic import TypeAdapter, ValidationError

from sleuth.graphs.chat.messages import (
    UNANSWERED,
    TextReply,
    answer_message,
    append_messages,
    message_to_json,
    unanswered_message,
)
from sleuth.graphs.core.answer import Answer, Verdict
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.thread import Thread, ThreadState, Turn
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.tools.errors import RunError, UsageError


def input_for(thread: Thread, state: StateSnapshot) -> dict[str, Any] | Command[Any] | None:
    """Return the graph's next input: a question, a message, or the reply that it waits for; None if it has it."""
    turn = thread.options.turn
    if turn is None:
        return None if state.values or state.tasks else {"question": thread.question}
    if turn.at != checkpoint_id_of(state):
        return None
    if turn.reply is not None:
        return Command(resume=json.loads(turn.reply))
    if thread.method != CHAT:  # a finished survey is updated
        return {"question": thread.question}
    return {"messages": [*convert_to_messages(turn.before), HumanMessage(turn.text, id=turn.id)]}


def continuing_turn(thread: Thread, latest: StateSnapshot, text: str, *, message_id: str, was_waiting: bool) -> Turn:
    """Return the turn of a message that continues a conversation, or replies to what the thread waits for."""
    require_timely_reply(thread, text, was_waiting=was_waiting)
    if _is_unfinished_chat(thread, latest):
        return branching_turn(thread, latest, text, start="", message_id=message_id)
    id, reply = message_id or uuid.uuid4().hex, None
    if latest.interrupts:  # it is a part of the turn that waits
        id = thread.options.turn.id if thread.options.turn else ""
        reply = json.dumps(read_reply(thread.method, latest, text))
    return Turn(text=text, reply=reply, at=checkpoint_id_of(latest), id=id, **_chat_before(thread))


def branching_turn(thread: Thread, latest: StateSnapshot, text: str, *, start: str, message_id: str) -> Turn:
    """Return the turn of a message at the checkpoint `start`, or at the latest one if it is empty."""
    at, id = checkpoint_id_of(latest), message_id or uuid.uuid4().hex
    messages = _left_messages(thread, latest) if start in ("", at) and _is_unfinished_chat(thread, latest) else []
    before = [message_to_json(message) for message in messages]
    return Turn(text=text, at=at, start=start or at, id=id, before=before, **_chat_before(thread))


def read_reply(method: str, state: StateSnapshot, reply: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a reply to the interrupt of a state as the graph reads it; a reply may be typed, or name the interrupt.

    Raises:
        UsageError: the reply cannot be used.
    """
    (waiting, *_), remedy = state.interrupts, "Reply with a text."
    schema: Any = TextReply
    if isinstance(reply, dict) and reply.keys() == {waiting.id}:
        reply = reply[waiting.id]
    if "action_requests" in waiting.value:
        from sleuth.graphs.core.approval import parse_typed_decision

        schema, remedy = runnable(method).approval, "Reply approve, reject, or with another list."
        reply = parse_typed_decision(reply, waiting.value) if isinstance(reply, str) else reply
    try:
        TypeAdapter[object](schema).validate_python(reply)
    except ValidationError as error:
        place, why = ".".join(map(str, error.errors()[0]["loc"])).rpartition("args.")[2], error.errors()[0]["msg"]
        why = f"{place}: {why}" if place else why
        raise UsageError(f"The reply cannot be used ({why.replace('Value error, ', '')}). {remedy}") from None
    return reply


def replying_turn(thread: Thread, latest: StateSnapshot, value: Any) -> Turn:  # noqa: ANN401 - any JSON
    """Return the turn that a reply continues; raise RunError if a reply was given already."""
    if is_unfinished(thread, latest):
        raise RunError(f"The last turn of {thread.id} has not ended: `sleuth resume {thread.id}` resumes it.")
    turn = thread.options.turn
    return Turn(reply=json.dumps(value), at=checkpoint_id_of(latest), id=turn.id if turn else "")


def require_timely_reply(thread: Thread, text: str, *, was_waiting: bool = False) -> None:
    """Raise RunError if a message is a reply, such as a second click, and the thread does not wait for it any more.

    It is one if the thread `was_waiting` when it was sent, repeats the reply in progress, or decides on a plan.
    """
    turn, is_active = thread.options.turn, thread.state in ("queued", "running", "interrupted")
    is_repeated = is_active and turn is not None and turn.reply is not None and turn.text == text
    is_decision = thread.options.values.get("approve_plan") and text.casefold() in ("approve", "reject")
    if thread.state != "waiting" and (was_waiting or is_repeated or is_decision):
        raise RunError(f"Thread {thread.id} does not wait for a reply any more: send a question instead.")


def _is_unfinished_chat(thread: Thread, latest: StateSnapshot) -> bool:
    return thread.method == CHAT and is_unfinished(thread, latest)


def _chat_before(thread: Thread) -> dict[str, Any]:
    """Return the state and the problem of a chat before a turn."""
    was = "done" if thread.state in ("done", "waiting") else "failed" if thread.problem else "stopped"
    return {"was": was, "problem": thread.problem}


def _unsent_messages(thread: Thread, state: StateSnapshot) -> list[AnyMessage]:
    """Return the messages of a chat that are stored, and not in a checkpoint yet."""
    inputs, turn = input_for(thread, state), thread.options.turn
    if isinstance(inputs, dict):
        return list(inputs["messages"])
    return [HumanMessage(turn.text, id=f"{turn.id}-reply")] if inputs is not None and turn and turn.text else []


def _left_messages(thread: Thread, state: StateSnapshot) -> list[AnyMessage]:
    """Return the unsent messages of a turn without an answer, and the message that states why it has none."""
    unsent = _unsent_messages(thread, state)
    asked = [message.id for message in [*state.values.get("messages", []), *unsent] if message.type == "human"]
    return [*unsent, unanswered_message(asked[-1] if asked else None, thread.problem)]


def messages_of(thread: Thread, state: StateSnapshot) -> list[AnyMessage]:
    """Return all messages of a chat in its latest state, also those that are not in a checkpoint yet.

    The last one, if it has no reply, has the `state` of the chat and the `problem` in `additional_kwargs`.
    """
    messages = append_messages([*state.values.get("messages", [])], [_unsent_messages(thread, state)])
    if messages and messages[-1].type == "human":
        about = {"state": thread.state, "problem": thread.problem}
        messages[-1] = messages[-1].model_copy(update={"additional_kwargs": about})
    return messages


def first_turn(message: str, after: Answer | None, *, message_id: str) -> Turn:
    """Return the first turn of a chat, which may follow up on the answer of another run."""
    before = _messages_of(after) if after else []
    return Turn(text=message, at="", id=message_id or uuid.uuid4().hex, before=before)


def _messages_of(answer: Answer) -> list[dict[str, Any]]:
    about = {name: getattr(answer, name) for name in ("status", "citations", "question", "method", "thread")}
    verdict = Verdict(status=answer.status, text=answer.text, citations=answer.citations)
    reply = answer_message(verdict, about, id=uuid.uuid4().hex)
    question = HumanMessage(answer.question, id=uuid.uuid4().hex)
    return [message_to_json(question), message_to_json(reply)]


def state_before(thread: Thread, turn: Turn) -> tuple[ThreadState, str, str | None]:
    """Return the state, the problem and the question of a chat before a turn of small talk, which changes none of them.

    A chat of nothing but small talk has no question, and the list of runs does not contain it.
    """
    is_first = turn.was == "done" and thread.verdict is None and thread.question == turn.text
    return turn.was, turn.problem, "" if is_first else None


def is_unfinished(thread: Thread, state: StateSnapshot) -> bool:
    """Return whether a turn is running or interrupted: it has neither ended nor asked for a reply."""
    return input_for(thread, state) is not None or bool(state.tasks and not state.interrupts)


def pending_interrupt(state: StateSnapshot) -> dict[str, Any] | None:
    """Return the value of the graph's interrupt, which a person has to answer; None if there is no interrupt."""
    return dict(state.interrupts[0].value) if state.interrupts else None


def unanswered_question(thread: Thread, state: StateSnapshot) -> str:
    """Return the message without an answer that only small talk followed, which did not change the chat's state."""
    if thread.state not in UNANSWERED or is_unfinished(thread, state):
        return ""
    for asked, reply in reversed([*pairwise(state.values.get("messages", []))]):
        if reply.additional_kwargs.get("method"):  # it was answered later
            return ""
        if reply.additional_kwargs.get("status") in UNANSWERED:
            return str(asked.text)
    return ""
