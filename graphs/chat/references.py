"""Follow-ups resolved by rules, where no model rewrites them: pronouns, and questions that repeat only a part.

A pronoun refers to a name of the latest turn that has a fitting one. "He" after "Who built the light?" is the answer,
"it" is the light. "And when?" asks the question before with another question word, "and Ruske?" with another name.
The rules know English only; a message that they do not fit is unchanged.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sleuth.agents.formatting import MAX_TURN_CHARS, MAX_TURNS, Turn
from sleuth.graphs.chat.small_talk import is_answered_by_rule
from sleuth.graphs.core.state import beginning_of
from sleuth.tools.text.names import FUNCTION_WORDS, find_mentions

_PERSON = r"he|him|his|himself|she|her|hers|herself"
_THING = r"it|its|itself"
_PLACE = r"(?<!is )(?<!are )(?<!was )(?<!were )there(?! (?:is|are|was|were)\b)"
_ANY = r"they|them|their|theirs|themselves"
_PRONOUN: Final = re.compile(
    rf"\b(?:(?P<person>{_PERSON})|(?P<thing>{_THING})|(?P<place>{_PLACE})|(?P<any>{_ANY}))\b", re.IGNORECASE
)
_POSSESSIVE: Final = {"his", "hers", "its", "their", "theirs"}
_LINK: Final = re.compile(r"^(?:(?:and|but|so|also|ok|okay|then|well)\b[\s,]*)+", re.IGNORECASE)
_ABOUT: Final = re.compile(r"^(?:what|how) about\s+", re.IGNORECASE)
_ASKING: Final = re.compile(
    r"^(?:in which \w+|how (?:many|much|long|old|far)|who|whom|what|when|where|which|why|how)\b", re.IGNORECASE
)
_KIN: Final = re.compile(
    r"\b(?:wife|husband|spouse|father|mother|parents?|sons?|daughters?|brothers?|sisters?)\b", re.IGNORECASE
)
_WHO: Final = re.compile(r"\b(?:who|whom|whose|name of)\b", re.IGNORECASE)
_LAST_PHRASE: Final = re.compile(r"\bthe (?:\w+ ){0,3}\w+(?=\W*$)", re.IGNORECASE)
_ASKS_ABOUT: Final = re.compile(r"[Ww]ho (?:is|was) [A-Z]\w*(?: [A-Z]\w*)*\W*")
_NAME: Final = re.compile(r"[A-Z]\w*(?:[ -](?:(?:of|de|von|van|the) )?[A-Z]\w*){0,4}")
"""A whole answer that is a name."""

_WHO_IS: Final = re.compile(r"who (?:is|was) (.+?)\W*", re.IGNORECASE)
_SHORT: Final = re.compile(r"(?!(?:an?|the|yes|no)\b)[^\W\d]+(?: [^\W\d]+){0,2}", re.IGNORECASE)
"""A whole answer that may be a name in lower case."""

Exchange = tuple[str, str]
"""A question that can be understood alone, and the first line of its answer."""


def refers_back(message: str) -> bool:
    """Return whether a message has a pronoun, and no name before it that the pronoun could refer to."""
    message = beginning_of(message)
    pronoun = _PRONOUN.search(message)
    return pronoun is not None and not any(message.find(name) < pronoun.start() for name in _names(message))


def resolve_references(message: str, turns: Sequence[Turn]) -> str:
    """Return a message as a question that can be understood without the turns before it, as far as the rules go."""
    exchanges: list[Exchange] = []
    for turn in turns[-MAX_TURNS:]:
        if turn.speaker == "user":
            exchanges.append((_resolve(turn.text[:MAX_TURN_CHARS], exchanges), ""))
        elif exchanges:
            line = turn.text.strip().partition("\n")[0][:MAX_TURN_CHARS]
            exchanges[-1] = exchanges[-1][0], re.sub(r"\s*\[\^*\d+\]", "", line).rstrip(".")
    beginning = beginning_of(message)
    return _resolve(beginning, exchanges) + message[len(beginning) :]


def _resolve(message: str, exchanges: Sequence[Exchange]) -> str:
    bare, asked = _LINK.sub("", message.strip()), [each for each in exchanges if not is_answered_by_rule(each[0])]
    if not asked:
        return message
    named = _replace_pronouns(bare, asked) if refers_back(message) else _complete(_ABOUT.sub("", bare), asked[-1][0])
    return f"{named[:1].upper()}{named[1:]}" if named else message


def _complete(bare: str, before: str) -> str:
    """Return the question before with the question word or the name that a message consists of; empty for others."""
    asking, names = _ASKING.match(bare), _names(bare)
    if asking and not re.sub(r"\W", "", bare[asking.end() :]):
        return _ASKING.sub(lambda _: asking.group(), before, count=1) if _ASKING.match(before) else ""
    replaced = _names(before)
    if names and replaced and not asking and re.sub(r"^the |\W+$", "", bare, flags=re.IGNORECASE) == names[0]:
        return before.replace(replaced[0], names[0])
    return ""


def _replace_pronouns(bare: str, exchanges: Sequence[Exchange]) -> str:
    """Return a message with the name instead of its pronouns; empty if no turn has one."""
    first = _PRONOUN.search(bare)
    kind = first.lastgroup if first else None
    candidates = (name for exchange in reversed(exchanges) for name in _candidates(kind, *exchange))
    guesses = (name for exchange in reversed(exchanges) for name in _guesses(*exchange) if kind == "person")
    name = next(candidates, "") or next(guesses, "")
    if not name:
        return ""

    def replace(pronoun: re.Match[str]) -> str:
        if pronoun.lastgroup != kind:
            return pronoun.group()
        word, after = pronoun.group().casefold(), re.match(r"\s+(\w+)", bare[pronoun.end() :])
        owns = word in _POSSESSIVE or (word == "her" and after and after[1].casefold() not in FUNCTION_WORDS)
        preposition = "in " if kind == "place" else ""
        return f"{preposition}{name}’s" if owns else f"{preposition}{name}"

    return _PRONOUN.sub(replace, bare)


def _candidates(kind: str | None, question: str, answer: str) -> Iterator[str]:
    """Yield the names to which a pronoun of a kind may refer after a question and its answer, the likeliest first."""
    asked, answered = _names(question), [answer] if _NAME.fullmatch(answer) else _names(answer)
    answered = [name for name in answered if name not in question]
    articles = [name for name in asked if re.search(rf"\bthe {re.escape(name)}", question, re.IGNORECASE)]
    others = [name for name in asked if name not in articles]
    asks_kin = _KIN.search(question)
    asks_person = (asks_kin or _WHO.search(question)) and not _ASKS_ABOUT.fullmatch(question)
    if kind == "person" and asks_person:
        yield from [*answered, *(others if asks_kin else [])]
    elif kind == "person":
        yield from [*others, *articles]
    elif kind == "place":
        yield from [*others, *articles] if asks_person else [*answered, *others, *articles]
    elif kind == "thing":
        phrases = [f"the {name}" for name in articles] or [phrase.group() for phrase in _LAST_PHRASE.finditer(question)]
        yield from [*phrases, *reversed(others)] if asks_person else [*answered, *phrases, *reversed(others)]
    else:
        yield from [*answered, *asked]


def _guesses(question: str, answer: str) -> Iterator[str]:
    """Yield what the pronoun of a person may refer to if no turn has a name that fits."""
    if _NAME.fullmatch(answer):  # "Which engineer built it?"
        yield answer
    if about := _WHO_IS.fullmatch(question):  # a name in lower case
        yield about[1]
    elif _WHO.search(question) and _SHORT.fullmatch(answer):
        yield answer


def _names(text: str) -> list[str]:
    """Return the longest names in a text, in order."""
    ends: dict[int, int] = {}
    for mention in find_mentions(text):
        ends[mention.start] = max(mention.end, ends.get(mention.start, 0))
    names, done = [], 0
    for start, end in sorted(ends.items()):
        if start >= done and text[start].isalpha():
            names.append(re.split(r"\s+(?:in|on|at|for|to)\s", text[start:end])[0])
            done = end
    return names
