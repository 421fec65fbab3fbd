"""Messages to a chat, and replies to a waiting run: each is stored as the next turn of its thread, and nothing runs."""

import json
import uuid
from typing import Any

from langgraph.types import StateSnapshot
from pydantic import TypeAdapter, ValidationError

from sleuth.graphs.chat.messages import TextReply, left_messages, messages_of_answer
from sleuth.graphs.chat.small_talk import is_answered_by_rule, settings_of_command
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.thread import Thread, Turn
from sleuth.graphs.persistence.threads import already_used
from sleuth.graphs.registry import METHODS, configure, runnable
from sleuth.graphs.runs.execution import checkpoint_id_of, with_paused_clock
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import HeldThread, RunService
from sleuth.graphs.runs.turns import is_unfinished, message_turn, reply_turn, require_timely_reply
from sleuth.tools.errors import RunError, UsageError
from sleuth.tools.langgraph_internals import COPY


def as_chat(request: RunRequest) -> RunRequest:
    """Return the request; small talk to a method begins a chat with the method, which is no run."""
    if request.method not in METHODS or not is_answered_by_rule(request.question):
        return request
    values = {"method": request.method, "method_settings": request.values}
    return request.model_copy(update={"method": CHAT, "values": values})


async def send(runs: RunService, request: RunRequest, *, seen: Thread | None = None) -> str:
    """Store the next message of a chat, or the reply to a waiting run; a new thread begins with it.

    A message after a turn that ended without an answer starts a new turn: the messages of the chat state why the
    turn before has no answer. Settings that the request does not name stay as they are.

    Args:
        runs: the runs.
        request: the message; its budget limits this turn of a chat, another run keeps its own if none is given.
        seen: the thread, as the sender has seen it.

    Returns:
        The thread.

    Raises:
        UsageError: a setting or the reply cannot be used; for a new thread, what `RunService.start` raises.
        RunError: a reply was given already, or the thread was used before, is no chat and waits for nothing.
        ThreadBusy: a turn is running.
    """
    is_chat, stored = request.kind.name == CHAT, seen
    if seen is None and request.thread:
        stored = await runs.store.threads.find(request.thread)
    if stored is None or stored.is_empty:
        return await (_start_chat(runs, request) if is_chat else runs.start(request))
    if stored.method != request.kind.name or request.after or not (is_chat or stored.state == "waiting"):
        raise already_used(stored.id)
    async with runs.hold(stored.id) as held:
        thread, latest, text = held.thread, held.state, request.question
        require_timely_reply(thread, text, was_waiting=stored.state == "waiting")
        if not latest.interrupts or is_unfinished(thread, latest):
            await branch_chat(held, request)
        else:
            reply = read_reply(thread.method, latest, text)
            await _queue(held, reply_turn(thread, latest, reply, text=text), request)
    return stored.id


async def _start_chat(runs: RunService, request: RunRequest) -> str:
    """Store a new chat, which keeps the pages and the filter of its first message."""
    text, values = request.question, settings_after({"method": request.default_method}, request)
    configure(request.kind, values, request.profile)
    before = messages_of_answer(request.after) if request.after else []
    turn = Turn(text=text, id=request.message_id or uuid.uuid4().hex, before=before)
    about = {"values": values, "question": "" if is_answered_by_rule(text) else text}
    return await runs.start(request.model_copy(update=about), turn=turn)


def settings_after(values: dict[str, Any], message: RunRequest) -> dict[str, Any]:
    """Return the settings of a chat after a message."""
    return {**values, **message.values, **settings_of_command(message.question)}


async def branch_chat(
    held: HeldThread, request: RunRequest, *, checkpoint: str = "", keep_settings: bool = True
) -> None:
    """Store a message that starts a new turn at a checkpoint, by default the latest; an open question is dropped.

    Without `keep_settings`, settings that the request does not name are the default ones.

    Raises:
        UnknownName: the checkpoint does not exist.
        UsageError: a setting cannot be used.
    """
    if checkpoint:
        await held.runs.state(held.thread, checkpoint)
    thread, latest, text = held.thread, held.state, request.question
    is_left = checkpoint in ("", checkpoint_id_of(latest)) and is_unfinished(thread, latest)
    before = left_messages(thread, latest) if is_left else []
    turn = message_turn(thread, latest, text, start=checkpoint, id=request.message_id, before=before)
    await _queue(held, turn, request, keep_settings=keep_settings)


async def _queue(held: HeldThread, turn: Turn, request: RunRequest, *, keep_settings: bool = True) -> None:
    thread, text, budget = held.thread, request.question, request.budget
    is_chat = thread.method == CHAT
    earlier = thread.options.values if keep_settings else {}
    values = settings_after(earlier, request) if is_chat else {**earlier, **request.values}
    configure(runnable(thread.method), values, thread.options.profile)
    is_first = is_chat and not thread.question and not is_answered_by_rule(text)
    limits = {"budget": budget} if is_chat or budget != Budget() else {}  # a reply lifts no limits of a run
    await held.queue(turn, question=text if is_first else None, values=values, **limits)


async def reply_to(held: HeldThread, value: Any, *, checkpoint: str = "") -> None:  # noqa: ANN401 - any JSON
    """Store the reply to a waiting run, which continues when it is run the next time.

    Args:
        held: the run.
        value: a text, or JSON in the form that the request names.
        checkpoint: an earlier state that waited, from which the run branches; by default the latest state.

    Raises:
        UnknownName: there is no such checkpoint.
        UsageError: the run cannot use the reply.
        RunError: the run does not wait for a reply, or a reply was given already.
    """
    runs, thread, latest = held.runs, held.thread, held.state
    state = await runs.state(thread, checkpoint) if checkpoint else latest
    if not state.interrupts:
        raise RunError(f"Thread {thread.id} does not wait for a reply: send a message instead.")
    value = read_reply(thread.method, state, value)
    if checkpoint_id_of(state) != checkpoint_id_of(latest):
        # A copy: the state itself has its earlier reply, which LangGraph would take.
        at = await runs.graph(thread).aupdate_state(with_paused_clock(state.config, state), None, as_node=COPY)
        turn = Turn(reply=json.dumps(value), at=at["configurable"]["checkpoint_id"], id=uuid.uuid4().hex)
    elif is_unfinished(thread, latest):
        raise RunError(f"The last turn of {thread.id} has not ended: `sleuth resume {thread.id}` resumes it.")
    else:
        turn = reply_turn(thread, latest, value)
    await held.queue(turn)


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
