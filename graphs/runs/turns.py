"""Turns: the next input of a thread, as it is stored and sent. A chat has one for each message."""

import json
import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import HumanMessage, convert_to_messages
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.thread import UNANSWERED, Thread, ThreadState, Turn
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.tools.errors import RunError


def message_turn(
    thread: Thread, latest: StateSnapshot, text: str, *, start: str = "", id: str = "", before: Sequence[Any] = ()
) -> Turn:
    """Return the turn of a message to a chat, at the checkpoint `start` or after the latest one.

    `id` is that of the message, and the messages `before` it are in no checkpoint.
    """
    was: ThreadState = "done" if thread.state in ("done", "waiting") else "failed" if thread.problem else "stopped"
    about = {"before": [*before], "was": was, "problem": thread.problem}
    return Turn(text=text, at=checkpoint_id_of(latest), start=start or None, id=id or uuid.uuid4().hex, **about)


def input_of_turn(thread: Thread, state: StateSnapshot) -> dict[str, Any] | Command[Any] | None:
    """Return the input of a thread's turn: a message, a question, or the reply to an interrupt; None if it is sent."""
    turn = thread.options.turn
    if turn is None or turn.at != checkpoint_id_of(state):
        return None
    if turn.reply is not None:
        return Command(resume=json.loads(turn.reply))
    if thread.method != CHAT:  # a finished survey is updated
        return {"question": thread.question}
    return {"messages": [*convert_to_messages(turn.before), HumanMessage(turn.text, id=turn.id)]}


def reply_turn(thread: Thread, latest: StateSnapshot, value: Any, *, text: str = "") -> Turn:  # noqa: ANN401 - any JSON
    """Return the part of the turn in progress that begins with a reply, which a person may have written as a text."""
    turn = thread.options.turn
    return Turn(text=text, reply=json.dumps(value), at=checkpoint_id_of(latest), id=turn.id if turn else "")


def require_timely_reply(thread: Thread, text: str, *, was_waiting: bool = False) -> None:
    """Raise RunError if a message is a reply, such as a second click, and the thread does not wait for it any more.

    It is one if the thread `was_waiting` when it was sent, repeats the reply in progress, or decides on a plan.
    """
    turn, is_active = thread.options.turn, thread.state in ("queued", "running", "interrupted")
    is_repeated = is_active and turn is not None and turn.reply is not None and turn.text == text
    is_decision = thread.options.values.get("approve_plan") and text.casefold() in ("approve", "reject")
    if thread.state != "waiting" and (was_waiting or is_repeated or is_decision):
        raise RunError(f"Thread {thread.id} does not wait for a reply any more: send a question instead.")


def state_before(thread: Thread, turn: Turn) -> tuple[ThreadState, str, str | None]:
    """Return the state, the problem and the question of a chat before a turn of small talk, which changes none of them.

    A chat of nothing but small talk has no question, and the list of runs does not contain it.
    """
    is_first = turn.was == "done" and thread.verdict is None and thread.question == turn.text
    return turn.was, turn.problem, "" if is_first else None


def is_unfinished(thread: Thread, state: StateSnapshot) -> bool:
    """Return whether a turn is running or interrupted: it has neither ended nor asked for a reply."""
    return input_of_turn(thread, state) is not None or bool(state.tasks and not state.interrupts)


def unanswered_turn(thread: Thread, state: StateSnapshot) -> Turn | None:
    """Return the turn that sends again the last message without an answer, if only small talk followed it.

    Small talk has not changed the state of the chat.
    """
    if thread.state not in UNANSWERED or is_unfinished(thread, state):
        return None
    for asked, reply in reversed([*pairwise(state.values.get("messages", []))]):
        if reply.additional_kwargs.get("method"):  # it was answered later
            return None
        if reply.additional_kwargs.get("status") in UNANSWERED:
            require_timely_reply(thread, str(asked.text))
            return message_turn(thread, state, str(asked.text))
    return None
