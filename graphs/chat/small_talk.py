"""Messages that are not looked up: their fixed replies, which state no facts, and rules for messages."""

import re
from collections.abc import Sequence
from types import MappingProxyType

from langchain_core.messages import AnyMessage

from sleuth.graphs.core.state import same_question
from sleuth.graphs.evidence.text_spans import content_words

REPLIES = MappingProxyType(
    {
        "hello": "Hello! What would you like to know?",
        "thanks": "You are welcome! Ask me anything else about your documents.",
        "goodbye": "Goodbye!",
        "introduction": (
            "I am sleuth: I answer questions about your documents and cite the passages. Ask me something about them."
        ),
    }
)
"""The replies without a search, by the kinds of `SmallTalk`."""

_NAME_OR_NUMBER = re.compile(r"\s(?!I\b)[A-Z]|\d")


def is_command(message: str) -> bool:
    """Return whether a message is a slash command, such as `/help`; paths are none."""
    return bool(re.fullmatch(r"/[a-zA-Z]+(\s.*)?", message))


def has_subject(message: str) -> bool:
    """Return whether a part of a message asks with a content word, or has a name, a number or three content words."""
    for part in re.findall(r"[^,;:.!?？؟]+[?？؟]?", message):
        words = 1 if part[-1] in "?？؟" else 3
        if len(content_words(part)) >= words or _NAME_OR_NUMBER.search(part.strip()):
            return True
    return False


def already_clarified(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the last message replies to a clarifying question, or was followed by one before."""
    *before, latest = messages
    clarifying = [at for at, message in enumerate(before) if message.additional_kwargs.get("asked_back")]
    return any(at == len(before) - 1 or same_question(before[at - 1].text, latest.text) for at in clarifying)
