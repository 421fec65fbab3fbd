"""Words of questions and passages: comparison, names, references and rephrasing."""

import re
from collections.abc import Mapping

from sleuth.tools.text.normalization import comparison_key

REFERENCE = re.compile(r"#(\d+)")

_RELATION = re.compile(r"(.+?) >> (.+)")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:(?: (?:of|the|de|von|and|for|&)){0,2} [A-Z][\w'’-]*)*|\b\d[\d,.]*\d\b")
_EMPTY = frozenset(
    _WORD.findall(
        "a an the of in on at to for from by with and or is was were are be been did do does has have had it its that "
        "this these those which what who whom whose when where why how one person place thing name called as than s"
    )
)
_DESCRIPTIONS = (
    (re.compile(r"what (?:is|was|are|were) (the .+)", re.IGNORECASE), r"\1"),
    (re.compile(r"who (.+)", re.IGNORECASE), r"the person who \1"),
    (re.compile(r"where (.+)", re.IGNORECASE), r"the place where \1"),
    (re.compile(r"(in|on) which (\w+) (.+)", re.IGNORECASE), r"the \2 \1 which \3"),
    (re.compile(r"which (\w+) (.+)", re.IGNORECASE), r"the \1 which \2"),
)
_PHRASINGS = ("{}", "{}, according to the documents", "Can you tell: {}")
MAX_QUESTION = 240


def content_words(text: str) -> frozenset[str]:
    """Return the words that distinguish one question from another."""
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def find_names(text: str) -> list[str]:
    """Return names and numbers, in their order, each once."""
    found = (_without_lead(name.strip(" .,")) for name in _NAME.findall(text))
    return list(dict.fromkeys(name for name in found if len(name) > 1))


def _without_lead(name: str) -> str:
    """Return a name without the question word before it, as in "Were Ilse"."""
    while name and name.split(maxsplit=1)[0].casefold() in _EMPTY:
        name = name.partition(" ")[2]
    return name


def mentions(text: str, answer: str) -> bool:
    """Return whether a text contains an answer as whole words."""
    wanted, read = comparison_key(answer).strip(" ."), comparison_key(text)
    if not wanted or wanted not in read:  # most texts: a search by pattern takes far longer
        return False
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", read) is not None


def find_references(question: str) -> list[int]:
    """Return the numbers of the hops, from 1, that a question builds on."""
    return sorted({int(number) for number in REFERENCE.findall(question)})


def fill_references(question: str, values: Mapping[int, str]) -> str:
    """Return a question with the values in place of its references."""
    return REFERENCE.sub(lambda found: values.get(int(found.group(1)), found.group()), question)


def split_relation(step: str) -> tuple[str, str] | None:
    """Return the parts of a step of the form "subject >> relation" (MuSiQue); None for other steps."""
    found = _RELATION.fullmatch(step.strip())
    return (found[1], found[2]) if found else None


def ask_relation(subject: str, relation: str) -> str:
    """Return a relation as a question."""
    return f"What is the {relation} of {subject}?"


def describe(question: str) -> str:
    """Return a question as a phrase: "Who built it?" becomes "the person who built it"."""
    asked = question.strip().rstrip("?")
    asked = asked[:1].lower() + asked[1:]
    for pattern, phrase in _DESCRIPTIONS:
        if pattern.fullmatch(asked):
            return pattern.sub(phrase, asked)
    return f"the answer to “{asked}”"


def rephrase(question: str, way: int) -> str:
    """Return the question in other words; way 0 does not change it."""
    asked = question.strip().rstrip("?").removeprefix("Can you tell: ").removesuffix(", according to the documents")
    return shorten(f"{_PHRASINGS[way % len(_PHRASINGS)].format(asked)}?")


def shorten(question: str) -> str:
    """Return the question cut to the length that a structured reply allows."""
    return question if len(question) <= MAX_QUESTION else f"{question[: MAX_QUESTION - 1].rstrip()}?"


def excerpt(unit: str, answer: str, most: int = 200) -> str:
    """Return the words of a sentence around an answer, cut to the length of a citation."""
    if len(unit) <= most:
        return unit
    at = max(0, unit.casefold().find(answer.casefold()))
    start = max(0, min(at - most // 2, len(unit) - most))
    cut = unit[start : start + most]
    return cut.split(" ", 1)[-1].rsplit(" ", 1)[0] if " " in cut.strip() else cut
