"""Roles of a chat: intent, question rewriting and small talk."""

from typing import Annotated, Final, Literal

from pydantic import Field

from sleuth.agents.formatting import Turn, format_turns
from sleuth.agents.model import Sampling
from sleuth.agents.role import Input, Output, Role

Intent = Literal["question", "follow-up", "ambiguous", "small talk"]

INTENTS: Final[tuple[Intent, ...]] = ("question", "follow-up", "ambiguous", "small talk")


class ConversationInput(Input):
    """The latest message, and the turns before it, oldest first."""

    question: str
    turns: tuple[Turn, ...]


def _values(input: ConversationInput) -> dict[str, str]:
    return {"conversation": format_turns(input.turns), "question": input.question}


class Rewritten(Output):
    """The question to ask instead."""

    question: str = Field(min_length=1, max_length=500)


class AskedBack(Output):
    """A clarifying question to the user, and replies to choose from."""

    question: str = Field(min_length=1, max_length=300)
    options: list[Annotated[str, Field(min_length=1, max_length=120)]] = Field(default_factory=list, max_length=4)


class SmallTalk(Output):
    """The kind of reply to small talk; `needs_search` if the message needs the documents after all."""

    needs_search: bool = False
    reply: Literal["hello", "thanks", "goodbye", "introduction"] = "introduction"


ROUTE = Role("router/route", ConversationInput, str, Sampling(max_tokens=8), choices=INTENTS, render=_values)
"""Classify the latest message."""

REWRITE = Role("rewriter/rewrite", ConversationInput, Rewritten, Sampling(max_tokens=200), render=_values)
"""Rewrite the latest message as a question that can be understood without the conversation."""

REPLY = Role("host/reply", ConversationInput, SmallTalk, Sampling(max_tokens=200), render=_values)
"""Choose the reply to small talk."""

ASK_BACK = Role("host/ask_back", ConversationInput, AskedBack, Sampling(max_tokens=240), render=_values)
"""Ask the user to clarify an ambiguous message."""
