"""Messages that are not looked up, and checks of replies without a search and of clarifying questions."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from langchain_core.messages import AnyMessage

from sleuth.tools.text import FUNCTION_WORDS, Word, sentence_spans, tokenize

INTRODUCTION = (
    "I am sleuth: I answer questions about your documents and cite the passages. Ask me something about them."
)
"""The reply to small talk if the model writes none that may be sent."""

_ASKS = re.compile(r"[?？؟][\"'”’»)\s]*$")
_PARTS = re.compile(r"[^,;:.!?？؟]+[?？؟]?")
_COMMAND = re.compile(r"/[a-zA-Z]+(\s.*)?")
_FEW_WORDS = 3
_LONGEST = 12
"""Letters without case in a sentence that is not a question: longer ones may state anything."""


def is_command(message: str) -> bool:
    """Return whether a message is a slash command, such as `/help`; paths are none."""
    return bool(_COMMAND.fullmatch(message))


def has_subject(message: str) -> bool:
    """Return whether a part of a message asks with a content word, or has a name, a number or three content words."""
    for part in _PARTS.findall(message):
        words = tokenize(part)
        content = sum(word.form not in FUNCTION_WORDS for word in words)
        if content >= (1 if _ASKS.search(part) else _FEW_WORDS) or _names_and_numbers(words, part):
            return True
    return False


def find_facts(reply: str, conversation: Iterable[str]) -> list[str]:
    """Return what the statements of a reply contain and the conversation does not: numbers, names within a sentence.

    In a script without capitals these are whole sentences.

    Args:
        reply: the text to send without a search.
        conversation: every message so far, the latest included.
    """
    known = {word.form for text in (*conversation, INTRODUCTION) for word in tokenize(text)}
    facts: list[str] = []
    for sentence in (reply[start:end] for start, end in sentence_spans(reply)):
        if _ASKS.search(sentence):
            continue
        words = tokenize(sentence)
        new = [word for word in _names_and_numbers(words, sentence) if word.form not in known]
        facts += [sentence[word.start : word.end] for word in new]
        uncased = sum(char.isalpha() and char.lower() == char.upper() for char in sentence)
        facts += [sentence] if uncased > _LONGEST else []
    return facts


def _names_and_numbers(words: Sequence[Word], text: str) -> list[Word]:
    """Return numbers, and capitalized words after the first, except for "I" and "I'm"."""
    return [
        word
        for at, word in enumerate(words)
        if word.shape == "number" or (at and word.shape == "name" and text[word.start + 1 : word.end][:1].isalnum())
    ]


def repeats_question(clarifying: str, asked: str) -> bool:
    """Return whether a clarifying question contains the whole message, apart from function words."""
    asked_words = _content(asked)
    return asked_words <= _content(clarifying) if len(asked_words) > 1 else clarifying.casefold() == asked.casefold()


def _content(text: str) -> set[str]:
    return {word.form for word in tokenize(text)} - FUNCTION_WORDS


def already_clarified(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the last message replies to a clarifying question, or was followed by one before."""
    *before, latest = messages
    if before and before[-1].additional_kwargs.get("asked_back"):
        return True
    clarified = (one for one, back in pairwise(before) if back.additional_kwargs.get("asked_back"))
    forms = [word.form for word in tokenize(latest.text)]
    return any([word.form for word in tokenize(one.text)] == forms for one in clarified)
