"""Words of questions and passages: what is compared, how a question is said, and how it is said otherwise."""

import re
from collections.abc import Mapping

from sleuth.tools.text import clauses, comparison_key

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
_OTHERWISE = ("{}", "{}, according to the documents", "Can you tell: {}")
_ASTRAY = "Which awards and honours were given to {}?"
MAX_QUESTION = 240


def content(text: str) -> frozenset[str]:
    """The words that tell one question from another."""
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def names(text: str) -> list[str]:
    """Names and numbers, in their order, each once."""
    found = (_without_lead(name.strip(" .,")) for name in _NAME.findall(text))
    return list(dict.fromkeys(name for name in found if len(name) > 1))


def _without_lead(name: str) -> str:
    """A name without the question word before it, as in "Were Ilse"."""
    while name and name.split(maxsplit=1)[0].casefold() in _EMPTY:
        name = name.partition(" ")[2]
    return name


def says(text: str, answer: str) -> bool:
    """Whether an answer stands in a text as whole words."""
    wanted, read = comparison_key(answer).strip(" ."), comparison_key(text)
    if not wanted or wanted not in read:  # most texts: a search by pattern takes far longer
        return False
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", read) is not None


def references(question: str) -> list[int]:
    """The numbers of the hops, from 1, that a question builds on."""
    return sorted({int(number) for number in REFERENCE.findall(question)})


def filled(question: str, values: Mapping[int, str]) -> str:
    """A question with the values in the place of its references."""
    return REFERENCE.sub(lambda found: values.get(int(found.group(1)), found.group()), question)


def related(step: str) -> tuple[str, str] | None:
    """Subject and relation of a step as MuSiQue writes some, "subject >> relation"; None for all others."""
    found = _RELATION.fullmatch(step.strip())
    return (found[1], found[2]) if found else None


def about(subject: str, relation: str) -> str:
    """A relation as a question."""
    return f"What is the {relation} of {subject}?"


def described(question: str) -> str:
    """What a question asks for, as a phrase: "Who built it?" becomes "the person who built it"."""
    asked = question.strip().rstrip("?")
    asked = asked[:1].lower() + asked[1:]
    for pattern, phrase in _DESCRIPTIONS:
        if pattern.fullmatch(asked):
            return pattern.sub(phrase, asked)
    return f"the answer to “{asked}”"


def otherwise(question: str, way: int) -> str:
    """The question in one of a few other ways; way 0 leaves it as it is."""
    asked = question.strip().rstrip("?").removeprefix("Can you tell: ").removesuffix(", according to the documents")
    return shortened(f"{_OTHERWISE[way % len(_OTHERWISE)].format(asked)}?")


def broader(question: str) -> str:
    """What one asks when the question itself has found nothing: whatever is known about whom it names."""
    about = " and ".join(names(question)[-2:])
    rest = " ".join(word for word in _WORD.findall(question) if word.casefold() not in _EMPTY)
    return shortened(f"What is known about {about or rest}?")


def astray(about: str) -> str:
    """A question that leads nowhere."""
    return shortened(_ASTRAY.format(about))


def shortened(question: str) -> str:
    """What a structured reply has room for."""
    return question if len(question) <= MAX_QUESTION else f"{question[: MAX_QUESTION - 1].rstrip()}?"


def excerpt(unit: str, answer: str, most: int = 200) -> str:
    """The words of a sentence around an answer, as many as a citation has room for."""
    if len(unit) <= most:
        return unit
    at = max(0, unit.casefold().find(answer.casefold()))
    start = max(0, min(at - most // 2, len(unit) - most))
    cut = unit[start : start + most]
    return cut.split(" ", 1)[-1].rsplit(" ", 1)[0] if " " in cut.strip() else cut


def clause(unit: str, answer: str, most: int = 120) -> str:
    """The words of a sentence that tell an answer, as somebody quotes who has to copy them: few, and from a beginning.

    From the sentence's beginning, or from the earliest clause of which the answer is within `most` characters, to the
    end of the answer; further where that would be hardly more than the answer.
    """
    at = max(0, unit.casefold().find(answer.casefold()))
    end = _word_end(unit, min(at + len(answer), at + most))
    begins = [begin for begin in clauses(unit) if end - most <= begin <= at]
    start = 0 if end <= most else min(begins, default=at)
    return unit[start : max(end, _word_end(unit, start + most // 2))].strip(" ,;:(")


def _word_end(text: str, at: int) -> int:
    """The end of the word in which a place is, or the text's end."""
    found = _WORD.match(text, max(0, at - 1))
    return min(len(text), max(at, found.end() if found else at))
