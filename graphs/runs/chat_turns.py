"""The chat's threads as runs: each message is a turn, and the thread goes on with the next one.

A message is written down before its turn begins, with the checkpoint that it was said at. Where the thread stands there
still the message has to be sent; further on it has arrived, and the turn goes on like any run.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from sleuth.graphs.chat import decision_in, in_words
from sleuth.graphs.core import Budget, Verdict
from sleuth.graphs.persistence import Thread
from sleuth.graphs.registry import CHAT, configure
from sleuth.tools.errors import RunError

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import Runs


def turn(message: str, at: str = "") -> dict[str, Any]:
    """A message as a thread's options keep it, and the checkpoint that it was said at."""
    return {"turn": {"text": message, "at": at}}


async def say(runs: "Runs", thread: Thread, message: str, *, values: dict[str, Any], budget: Budget) -> None:
    """Writes down the next message of a chat, or the reply to what it asks back; `Runs.run` then takes the turn.

    Args:
        values: settings that change from here on.
        budget: what this turn may spend.

    Raises:
        UsageError: a setting cannot be used.
        RunError: the last turn has not ended; ThreadBusy where it is being run.
    """
    chosen = {**thread.options["values"], **values}
    configure(CHAT, chosen, thread.options["profile"])
    async with runs.store.locks.hold(thread.id):
        state = await runs.graph(thread).aget_state(runs.config(thread))
        if unfinished(thread, state):
            raise RunError(f"The last turn of {thread.id} has not ended: `sleuth resume {thread.id}` goes on with it.")
        said = turn(message, str(state.config["configurable"].get("checkpoint_id", "")))
        options = {**thread.options, "values": chosen, "budget": asdict(budget), **said}
        await runs.store.threads.set_options(thread.id, options)


def to_send(thread: Thread, state: StateSnapshot) -> dict[str, Any] | Command[Any] | None:
    """What the graph still has to be given: a message, or the reply that it waits for; None where it has it."""
    said = thread.options["turn"]
    if said["at"] != state.config["configurable"].get("checkpoint_id", ""):
        return None
    asked = waits_for(state)
    if asked is not None:
        return Command(resume=decision_in(said["text"]) if "action_requests" in asked else said["text"])
    id = str(uuid5(NAMESPACE_OID, f"{thread.id}/{said['at']}"))  # to send it twice is harmless
    return {"messages": [HumanMessage(said["text"], id=id)]}


def unfinished(thread: Thread, state: StateSnapshot) -> bool:
    """Whether a chat's turn is under way or broken off: it has neither ended nor asked back."""
    return to_send(thread, state) is not None or bool(state.tasks and not state.interrupts)


def waits_for(state: StateSnapshot) -> dict[str, Any] | None:
    """What the person is asked, as the graph puts it; None where nothing waits for them."""
    return dict(state.interrupts[0].value) if state.interrupts else None


def asked_back(asked: dict[str, Any]) -> Verdict:
    """The same in words, as the end of a turn."""
    text = in_words(asked) if "action_requests" in asked else str(asked["question"])
    return Verdict(status="waiting", text=text, citations=[])
