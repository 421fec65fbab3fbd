"""Threads of the chat as runs: each message is a turn of the same thread.

A message is stored before its turn begins, with the checkpoint at which it was added. If that is still the latest one,
the message has to be sent. Otherwise it has arrived, and the turn resumes like any run.
"""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.chat import describe_request, parse_typed_decision
from sleuth.graphs.core import Budget, Verdict
from sleuth.graphs.persistence import Thread
from sleuth.graphs.registry import CHAT, configure
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.tools.errors import RunError, UnknownName, UsageError

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import RunService


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The reply to an interrupt; `value` is any JSON."""

    value: Any


def pending_message(message: str, at: str = "") -> dict[str, Any]:
    """Return the entry of a thread's options for a message and the checkpoint at which it was added."""
    return {"turn": {"text": message, "at": at}}


async def add_message(
    runs: "RunService", thread: Thread, message: str, *, values: dict[str, Any], budget: Budget
) -> None:
    """Store the next message of a chat, or the reply to its question; `RunService.run` then executes the turn.

    Args:
        values: settings that change from this turn on.
        budget: limits of this turn.

    Raises:
        UsageError: a setting cannot be used.
        RunError: the last turn has not ended; ThreadBusy if it is running.
    """
    chosen = {**thread.options["values"], **values}
    configure(CHAT, chosen, thread.options["profile"])
    async with runs.store.locks.hold(thread.id):
        state = await runs.graph(thread).aget_state(runs.config(thread))
        if is_unfinished(thread, state):
            raise RunError(f"The last turn of {thread.id} has not ended: `sleuth resume {thread.id}` resumes it.")
        message_options = pending_message(message, checkpoint_id_of(state))
        options = {**thread.options, "values": chosen, "budget": asdict(budget), **message_options}
        await runs.store.threads.set_options(thread.id, options)


async def add_input(
    runs: "RunService",
    thread: Thread,
    given: str | Reply,
    *,
    message_id: str = "",
    checkpoint: str = "",
    values: dict[str, Any],
    budget: Budget,
) -> None:
    """Store the next input of a chat as LangGraph defines it; `RunService.run` then executes the turn.

    Unlike `add_message`, a message always starts a new turn: it ends one that was stopped, and drops an open interrupt.

    Args:
        runs: the runs of the owner.
        thread: the chat.
        given: a message, or the reply to an interrupt.
        message_id: the id of the message; by default one is derived from its place.
        checkpoint: the checkpoint from which the turn branches; the latest one if empty.
        values: the settings from this turn on; empty to keep those of the chat.
        budget: limits of this turn.

    Raises:
        UsageError: a setting cannot be used, or no interrupt waits for the reply.
        UnknownName: the checkpoint does not exist.
        ThreadBusy: a turn is running.
    """
    chosen = values or thread.options["values"]
    configure(CHAT, chosen, thread.options["profile"])
    async with runs.store.locks.hold(thread.id):
        at = checkpoint_id_of(await runs.graph(thread).aget_state(runs.config(thread)))
        start = await runs.graph(thread).aget_state(runs.config(thread, checkpoint or None))
        if checkpoint and start.created_at is None:
            raise UnknownName("checkpoint", checkpoint, [at], "`threads.get_history` returns them.")
        if isinstance(given, Reply) and not start.interrupts:
            raise UsageError(f"Thread {thread.id} does not wait for a reply: send a message instead of `command`.")
        said = {"text": "", "reply": json.dumps(given.value)} if isinstance(given, Reply) else {"text": given}
        turn = {**said, "at": at, "from": checkpoint or at, "id": message_id}
        options = {**thread.options, "values": chosen, "budget": asdict(budget), "turn": turn}
        await runs.store.threads.set_options(thread.id, options)


def branch_point(thread: Thread) -> str | None:
    """Return the checkpoint at which the next input starts; None if it is the latest one."""
    turn = thread.options["turn"]
    start = str(turn.get("from", turn["at"]))
    return None if start == turn["at"] else start


def input_for(thread: Thread, state: StateSnapshot) -> dict[str, Any] | Command[Any] | None:
    """Return the graph's next input: a message, or the reply that it waits for; None if it has received that."""
    message = thread.options["turn"]
    if message["at"] != checkpoint_id_of(state):
        return None
    if "reply" in message:
        return Command(resume=json.loads(message["reply"]))
    asked = None if "from" in message else pending_interrupt(state)
    if asked is not None:
        return Command(resume=parse_typed_decision(message["text"]) if "action_requests" in asked else message["text"])
    # Sending it twice is harmless.
    id = message.get("id") or str(uuid5(NAMESPACE_OID, f"{thread.id}/{message['at']}"))
    return {"messages": [HumanMessage(message["text"], id=id)]}


def is_unfinished(thread: Thread, state: StateSnapshot) -> bool:
    """Return whether a turn is running or interrupted: it has neither ended nor asked for a reply."""
    return input_for(thread, state) is not None or bool(state.tasks and not state.interrupts)


def pending_interrupt(state: StateSnapshot) -> dict[str, Any] | None:
    """Return the value of the graph's interrupt, which a person has to answer; None if there is no interrupt."""
    return dict(state.interrupts[0].value) if state.interrupts else None


def interrupt_as_verdict(asked: dict[str, Any]) -> Verdict:
    """Return an interrupt as the verdict of a turn."""
    text = describe_request(asked) if "action_requests" in asked else str(asked["question"])
    return Verdict(status="waiting", text=text, citations=[])
