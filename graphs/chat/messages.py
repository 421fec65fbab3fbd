"""A chat's messages: how they are kept, what of them a role reads, and what ours carry beside their text."""

from collections.abc import Sequence
from typing import Any, Final, Literal
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, AnyMessage, convert_to_messages
from langgraph.channels import DeltaChannel
from langgraph.graph.message import add_messages

from sleuth.agents.formatting import Turn, latest_turns
from sleuth.agents.roles.conversation import AskedBack, ConversationInput
from sleuth.graphs.core import Cost, Hop, Verdict
from sleuth.graphs.evidence import footnoted

_SPEAKERS: Final[dict[str, Literal["user", "assistant"]]] = {"human": "user", "ai": "assistant"}


def said(kept: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """LangGraph's `add_messages`, write by write.

    A message that came without an id, as a pair of role and text, gets the same one however often it is read.
    """
    for write in writes:
        added = convert_to_messages(write if isinstance(write, list) else [write])
        for at, message in enumerate(added, start=len(kept)):
            message.id = message.id or str(uuid5(NAMESPACE_OID, f"{at} {message.type} {message.text}"))
        kept = add_messages(kept, added)  # type: ignore[assignment,arg-type]  # typed for all that becomes messages
    return kept


Messages: DeltaChannel[list[AnyMessage]] = DeltaChannel(said)


def heard(messages: Sequence[AnyMessage], question: str) -> ConversationInput:
    """The last message, as the question that it puts, with the latest of what was said before it."""
    turns = [
        Turn(speaker=_SPEAKERS[message.type], text=message.text)
        for message in messages[:-1]
        if message.type in _SPEAKERS and message.text
    ]
    return ConversationInput(question=question, turns=latest_turns(turns))


def reply(verdict: Verdict, hop: Hop | None, *, question: str, cost: Cost, warnings: list[str]) -> AIMessage:
    """An answer with footnotes; what it cites and where it comes from are in `additional_kwargs`.

    Where nothing was looked up the text stands alone: there is nothing found that could be said not to suffice.
    """
    looked_up = hop is not None and hop["status"] != "new"
    text = footnoted(verdict).text if looked_up else verdict["text"] or footnoted(verdict).text
    about = {
        "status": verdict["status"],
        "citations": verdict["citations"],
        "question": question,
        "method": hop["method"] if hop else "",
        "thread": hop["thread"] if hop else "",
        "cost": cost,
        "warnings": warnings,
    }
    return AIMessage(content=text, additional_kwargs=about)


def asking_back(back: AskedBack) -> AIMessage:
    """A question to the person; the replies to choose from are in `additional_kwargs`."""
    about = {"status": "waiting", "asked_back": True, "options": back.options}
    return AIMessage(content=back.question, additional_kwargs=about)
