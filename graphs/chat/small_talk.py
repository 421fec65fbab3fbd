"""Replies of a chat without a search, checked by code: no fact without evidence, no repeated question.

Numbers and names are recognized by their spelling. In a script without capitals only short sentences and questions may
be sent.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from langchain_core.messages import AnyMessage

from sleuth.tools.text import FUNCTION_WORDS, Word, sentence_spans, tokenize

_BEGINS = re.compile(r"[.!?…\n]|[^\w\s.,:;'\"“”‘’«»()\[\]&/–—-]")
"""A mark between two words after which a sentence begins: the end of the one before, or an emoji."""
_ASKS = re.compile(r"[?？؟][\"'”’»)\s]*$")
_LONGEST = 12
"""Letters without case in a sentence that is not a question: longer ones may state anything."""
_ALIKE = 0.8


def _word_set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_NO_NAMES = _word_set(
    "i im ive id ill ok okay hi hello hey welcome thanks bye goodbye great good nice perfect wonderful sure certainly",
    "absolutely yes no sorry cheers everything everyone nothing something anything today life ai pdf sleuth",
    "du dich dir dein deine sie ihnen ihr ihre ihren ihrem ihrer tag morgen abend hallo dank hilfe freude frage fragen",
    "antwort antworten dokument dokumente dokumenten unterlagen datei dateien sammlung thema themen information",
    "informationen assistent danke bitte gern gerne ja nein bonjour salut merci hola gracias ciao grazie",
)
"""Words of small talk that are not names although they are capitalized, or alone in a sentence."""
_NUMBERS = _word_set(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen",
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen",
)
_VERBS = _word_set("was is were did has had does")
"""Verbs that make the first word of a sentence its subject; so do others that end in "ed"."""
_US = _word_set(
    "you your yours yourself u du dich dir dein deine deinen deiner sie ihnen ihr ihre ihren tu te toi ton ta vous",
    "votre vos usted ustedes ti tus lei voi",
)
"""Words that address the assistant."""
_POLITE = _word_set(
    "please sorry do did does you your mean are is can could would tell me clarify asking ask want wanted to know",
    "about if i understand just so the a an whether that question meinst meinen du sie bitte",
)
"""Words around a clarifying question that do not change its meaning."""
_CHOOSES = _word_set("which what who whom whose where when or welche welcher welches welchen was wer wo wann oder")


def needs_search(kind: str, messages: Sequence[AnyMessage], *, ask_back: bool) -> bool:
    """Return whether the last message is a question after all: it may not be clarified, or is more than small talk."""
    if kind == "ambiguous":
        return not ask_back or already_clarified(messages)
    return kind == "small talk" and is_question(messages[-1].text)


def find_facts(reply: str, conversation: Iterable[str]) -> list[str]:
    """Return the numbers and names of a reply that the conversation does not contain, and statements without case.

    Args:
        reply: the text to send without a search.
        conversation: every message so far, the latest included.
    """
    known = {word.form for text in conversation for word in tokenize(text)} | _NO_NAMES
    found, run = [], tokenize(reply)
    for at, word in enumerate(run):
        is_number = word.form in _NUMBERS or any(map(str.isdigit, reply[word.start : word.end]))
        if word.form not in known and (is_number or _is_name(run, at, reply)):
            found.append(reply[word.start : word.end])
    return found or [reply[start:end] for start, end in sentence_spans(reply) if _states(reply[start:end])]


def _is_name(run: Sequence[Word], at: int, text: str) -> bool:
    """Return whether a capital is not that of a sentence: of its first words only a subject or a single word counts."""
    word, after = run[at], run[at + 1] if at + 1 < len(run) else None
    before = text[run[at - 1].end : word.start] if at else "."
    if word.shape != "name" or (":" in before and word.form in FUNCTION_WORDS):
        return False
    if not _BEGINS.search(before):
        return True
    if word.form in FUNCTION_WORDS:
        return False
    alone = after is None or bool(_BEGINS.search(text[word.end : after.start]))
    return alone or (after is not None and (after.form in _VERBS or after.form.endswith("ed")))


def _states(sentence: str) -> bool:
    letters = sum(char.isalpha() and char.lower() == char.upper() for char in sentence)
    return letters > _LONGEST and not _ASKS.search(sentence)


def is_question(message: str) -> bool:
    """Return whether a message is a question about anything but the assistant, and so not small talk."""
    said = {word.form for word in tokenize(message)}
    return len(said) > 2 and not said & _US and bool(_ASKS.search(message))


def repeats_question(clarifying: str, asked: str) -> bool:
    """Return whether a clarifying question asks nothing that the message does not: it has the same words, or nearly."""
    one, other = _asked(clarifying), _asked(asked)
    new = one - other
    return not new or (len(one & other) >= _ALIKE * len(one | other) and not new & _CHOOSES)


def _asked(question: str) -> set[str]:
    forms = [word.form for word in tokenize(question)]
    return {form for form in forms if form not in _POLITE} or set(forms)


def already_clarified(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the last message replies to a clarifying question, or was followed by one before."""
    *before, latest = messages
    if before and before[-1].additional_kwargs.get("asked_back"):
        return True
    clarified = (one for one, back in pairwise(before) if back.additional_kwargs.get("asked_back"))
    forms = [word.form for word in tokenize(latest.text)]
    return any([word.form for word in tokenize(one.text)] == forms for one in clarified)
