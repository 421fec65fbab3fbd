"""Further inputs of a thread: the messages of a chat, and replies to what a run asks the person.

An input is stored before it is used, with the checkpoint at which it was added. If that is still the latest one, the
input has to be sent. Otherwise it has arrived, and the thread resumes like any run.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.core.answer import Verdict
from sleuth.graphs.core.approval import describe_request, parse_typed_decision
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.thread import Thread, Turn
from sleuth.graphs.registry import CHAT, configure, runnable
from sleuth.graphs.runs.execution import checkpoint_id_of, now
from sleuth.tools.errors import RunError, UsageError

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import RunService


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The reply to an interrupt; `value` is any JSON."""

    value: Any


async def add_turn(
    runs: "RunService",
    thread: Thread,
    given: str | Reply,
    *,
    start: str | None = None,
    message_id: str = "",
    values: dict[str, Any],
    budget: Budget,
) -> None:
    """Store the next input of a thread; `RunService.run` then continues it.

    Args:
        runs: the runs of the owner.
        thread: a chat, or a run that waits for a reply.
        given: a message, or the reply to an interrupt.
        start: None for a message that continues the conversation: it replies to an open question. Otherwise, as
            LangGraph defines it, the input starts a new turn at this checkpoint, the latest one if empty: it ends a
            turn that was stopped, and a message drops an open interrupt.
        message_id: the id of the message; by default one is derived from its place.
        values: the settings from this turn on.
        budget: limits of this turn of a chat; another run keeps its own if none are given.

    Raises:
        UsageError: a setting cannot be used, or nothing waits for the reply.
        UnknownName: the checkpoint does not exist.
        RunError: the conversation cannot continue: the last turn has not ended.
        ThreadBusy: a turn is running.
    """
    is_chat = thread.method == CHAT.name
    configure(runnable(thread.method), values, thread.options.profile)
    async with runs.store.locks.hold(thread.id):
        latest = await runs.state(thread)
        at = checkpoint_id_of(latest)
        place: dict[str, Any] = {"at": at}
        if not is_chat and not latest.interrupts and not isinstance(given, Reply):
            raise already_used(thread.id)
        if start is not None:
            place |= {"start": start or at, "id": message_id}
        state = await runs.state(thread, start) if start else latest
        if isinstance(given, Reply) and not state.interrupts:
            raise UsageError(f"Thread {thread.id} does not wait for a reply.")
        if start is None and is_chat and is_unfinished(thread, latest):
            raise RunError(f"The last turn of {thread.id} has not ended: `sleuth resume {thread.id}` resumes it.")
        message = {"text": "", "reply": json.dumps(given.value)} if isinstance(given, Reply) else {"text": given}
        update = {"values": values, "turn": Turn(**message, **place)}
        if is_chat or budget != Budget():  # a reply does not lift the limits of a run
            update["budget"] = budget
        await runs.store.threads.set_options(thread.id, thread.options.model_copy(update=update))
    await runs.store.threads.set_state(thread.id, "queued", at=now())


def already_used(id: str) -> UsageError:
    """Return the error for a new question in a thread that has one."""
    return UsageError(f"Thread {id} was used already: `sleuth resume {id}` resumes it, `runs fork` branches from it.")


def input_for(thread: Thread, state: StateSnapshot) -> dict[str, Any] | Command[Any] | None:
    """Return the graph's next input: a question, a message, or the reply that it waits for; None if it has it."""
    turn = thread.options.turn
    if turn is None:
        return None if state.values or state.tasks else {"question": thread.question}
    if turn.at != checkpoint_id_of(state):
        return None
    asked = pending_interrupt(state)
    if turn.reply is not None or (asked and turn.start is None):
        value = turn.text if turn.reply is None else json.loads(turn.reply)
        if isinstance(value, str) and asked and "action_requests" in asked:
            value = parse_typed_decision(value, asked)
        return Command(resume=value)
    if thread.method != CHAT.name:  # a finished survey is updated
        return {"question": thread.question}
    # Sending it twice is harmless.
    id = turn.id or str(uuid5(NAMESPACE_OID, f"{thread.id}/{turn.at}"))
    return {"messages": [HumanMessage(turn.text, id=id)]}


def is_unfinished(thread: Thread, state: StateSnapshot) -> bool:
    """Return whether a turn is running or interrupted: it has neither ended nor asked for a reply."""
    return input_for(thread, state) is not None or bool(state.tasks and not state.interrupts)


def pending_interrupt(state: StateSnapshot) -> dict[str, Any] | None:
    """Return the value of the graph's interrupt, which a person has to answer; None if there is no interrupt."""
    return dict(state.interrupts[0].value) if state.interrupts else None


def interrupt_as_verdict(asked: dict[str, Any]) -> Verdict:
    """Return an interrupt as the verdict of the run that waits for a reply."""
    text = describe_request(asked) if "action_requests" in asked else str(asked["question"])
    return Verdict(status="waiting", text=text, citations=[])
