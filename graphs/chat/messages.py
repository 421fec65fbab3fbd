"""Messages of a chat: their reducer, the part that roles read, and the data of ours besides the text."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, convert_to_messages
from langchain_core.messages.ai import UsageMetadata
from langgraph.channels import DeltaChannel
from langgraph.graph.message import add_messages
from langgraph.types import StateSnapshot
from pydantic import StringConstraints

from sleuth.agents.llm.tracing import as_usage
from sleuth.graphs.core.answer import Answer, Verdict, total_cost
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.runs.turns import input_of_turn

TextReply = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""The reply to a clarifying question."""


def append_messages(messages: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """Apply LangGraph's `add_messages`, write by write.

    A message without an id, such as a pair of role and text, gets the same id on every read.
    """
    for write in writes:
        added = convert_to_messages(write if isinstance(write, list) else [write])
        for at, message in enumerate(added, start=len(messages)):
            message.id = message.id or str(uuid5(NAMESPACE_OID, f"{at} {message.type} {message.text}"))
        messages = add_messages(messages, added)  # type: ignore[assignment,arg-type]  # typed for all that becomes messages
    return messages


class MessagesChannel(DeltaChannel[list[AnyMessage]]):
    """Channel whose JSON schema is that of messages; LangGraph Studio offers its chat view for such a schema."""

    @property
    def ValueType(self) -> type[list[AnyMessage]]:  # noqa: N802 - as the base has it
        """Type of the value."""
        return list[AnyMessage]

    @property
    def UpdateType(self) -> type[list[AnyMessage]]:  # noqa: N802 - as the base has it
        """Type of a write."""
        return list[AnyMessage]


Messages = MessagesChannel(append_messages)


def reply_id(messages: Sequence[AnyMessage]) -> str:
    """Return the id of the reply to the last message of the person, known before the reply is written."""
    return reply_id_to(next((message.id for message in reversed(messages) if message.type == "human"), None))


def reply_id_to(message: str | None) -> str:
    """Return the id of the reply to a message with this id."""
    return str(uuid5(NAMESPACE_OID, f"reply to {message}"))


def message_to_json(message: AnyMessage) -> dict[str, Any]:
    """Return a message as JSON, as `convert_to_messages` reads it."""
    return message.model_dump(include={"type", "content", "id", "additional_kwargs"}, mode="json")


def run_message(values: Mapping[str, Any], about: dict[str, Any], *, id: str | None = None) -> AIMessage:
    """Return the verdict in a method's state as a message with footnotes, with the usage of the run's model calls."""
    usage = as_usage(**total_cost(values["calls"]))
    return answer_message(values["verdict"], about, id=id, usage=usage)


def answer_message(
    verdict: Verdict, about: Mapping[str, Any], *, id: str | None, usage: UsageMetadata | None = None
) -> AIMessage:
    """Return a verdict as a message with footnotes; the places of its `marks` are in `additional_kwargs` too."""
    marked = with_footnotes(verdict)
    about = {**about, "marks": [list(each) for each in marked.marks]}
    return AIMessage(marked.text, id=id, additional_kwargs=about, usage_metadata=usage)


def _unsent_messages(thread: Thread, state: StateSnapshot) -> list[AnyMessage]:
    """Return the messages of a chat that are stored, and not in a checkpoint yet."""
    inputs, turn = input_of_turn(thread, state), thread.options.turn
    if isinstance(inputs, dict):
        return list(inputs["messages"])
    return [HumanMessage(turn.text, id=f"{turn.id}-reply")] if inputs is not None and turn and turn.text else []


def left_messages(thread: Thread, state: StateSnapshot) -> list[dict[str, Any]]:
    """Return the unsent messages of a turn without an answer, and the message of ours that states why it has none."""
    problem, unsent = thread.problem, _unsent_messages(thread, state)
    text = f"This message was not answered. {problem}" if problem else "This message was not answered: it was stopped."
    about: dict[str, Any] = {"status": "failed" if problem else "stopped", "citations": []}
    id = reply_id([*state.values.get("messages", []), *unsent])
    return [message_to_json(each) for each in (*unsent, AIMessage(text, id=id, additional_kwargs=about))]


def messages_of(thread: Thread, state: StateSnapshot) -> list[AnyMessage]:
    """Return all messages of a chat in its latest state, also those that are not in a checkpoint yet.

    The last one, if it has no reply, has the `state` of the chat and the `problem` in `additional_kwargs`.
    """
    messages = append_messages([*state.values.get("messages", [])], [_unsent_messages(thread, state)])
    if messages and messages[-1].type == "human":
        about = {"state": thread.state, "problem": thread.problem}
        messages[-1] = messages[-1].model_copy(update={"additional_kwargs": about})
    return messages


def messages_of_answer(answer: Answer) -> list[dict[str, Any]]:
    """Return a question and its answer as the messages with which a chat begins."""
    about = {name: getattr(answer, name) for name in ("status", "citations", "question", "method", "thread")}
    verdict = Verdict(status=answer.status, text=answer.text, citations=answer.citations)
    reply = answer_message(verdict, about, id=uuid4().hex)
    question = HumanMessage(answer.question, id=uuid4().hex)
    return [message_to_json(question), message_to_json(reply)]
