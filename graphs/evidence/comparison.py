"""Questions that compare two dates: what to look up for each of the two, and which one it is.

An encoder reads dates, and does not compare them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sleuth.graphs.core.state import beginning_of

_TIME = re.compile(
    r"\b(?:(?P<early>first|earlier|earliest|older|oldest)|"
    r"later|latest|last|younger|youngest|newer|newest|(?:more|most) recent(?:ly)?)\b",
    re.IGNORECASE,
)
_NAMES = re.compile(r"(?:[^A-Z,]*, *)?(?:between +)?(?P<one>.+?),? +or +(?P<other>.+?) *\?")
_OWNER = re.compile(r"\b(?:whose|ha[sd] (?:the|an?)) (?P<role>\w+)", re.IGNORECASE)
_DEATH = re.compile(r"\b(?:die[sd]?|dead)\b", re.IGNORECASE)
_BIRTH = re.compile(r"\b(?:born|(?:old|young)(?:er|est))\b", re.IGNORECASE)
_EVENT = re.compile(r"\b(?P<verb>came out|\w+(?:ed|en|wn|lt|ld)) (?:the )?\w+(?: recent(?:ly)?)?$", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two names, and the question for the date of each; `latest` if the later one is wanted."""

    names: tuple[str, str]
    questions: tuple[str, str]
    latest: bool

    def choose(self, dates: Sequence[str | None]) -> str | None:
        """Return the name that the question asks for.

        Args:
            dates: the date of each name, as `read_date` returns it.

        Returns:
            None if a date is missing, or if they do not differ as far as both are given.

            >>> compared = read_comparison("Which was built first, the mill or the ferry?")
            >>> compared.choose(["1911-05", "1904"])
            'the ferry'
        """
        one, other = dates
        if not one or not other:
            return None
        length = min(len(one), len(other))
        if one[:length] == other[:length]:
            return None
        return self.names[(one < other) == self.latest]


def read_comparison(question: str) -> Comparison | None:
    """Return what a question compares; None if it does not compare the dates of two names.

    >>> read_comparison("Who was born first, Oda Brask or Jon Rell?").questions
    ('When was Oda Brask born?', 'When was Jon Rell born?')
    """
    question = beginning_of(question)
    time = _TIME.search(question)
    names = _NAMES.fullmatch(question[time.end() :].strip(" ,:")) if time else None
    if not time or not names:
        return None
    stem = question[: time.end()]
    owner, asked = _OWNER.search(stem), _question(stem)
    if not asked:
        return None
    both = (names["one"], names["other"])
    of = f"the {owner['role']} of " if owner else ""
    one, other = (asked.format(f"{of}{name}") for name in both)
    return Comparison(names=both, questions=(one, other), latest=not time["early"])


def _question(stem: str) -> str:
    """Return the question for a date with a place for the name, from the beginning of a question."""
    if _DEATH.search(stem):
        return "When did {} die?"
    if _BIRTH.search(stem):
        return "When was {} born?"
    event = _EVENT.search(stem)
    if not event:
        return ""
    return f"When was {{}} {'released' if event['verb'] == 'came out' else event['verb']}?"


def read_date(text: str) -> str | None:
    """Return the date in a text as YYYY-MM-DD, YYYY-MM or YYYY, as far as it is given; None without one.

    >>> read_date("Built in May 1911.")
    '1911-05'
    """
    from dateutil import parser

    if _YEAR.fullmatch(text.strip()):
        return text.strip()
    try:
        one, other = (
            parser.parse(text, default=datetime(year, month, day), fuzzy=True, dayfirst=not re.match(r"\s*\d{4}", text))
            for year, month, day in ((2000, 1, 1), (2004, 2, 2))
        )
    except (ValueError, OverflowError):
        years = re.findall(r"\b\d{4}\b", text)
        return years[0] if len(years) == 1 else None
    if one.year != other.year:
        return None
    if one.month != other.month:
        return f"{one.year:04}"
    return f"{one:%Y-%m}" if one.day != other.day else f"{one:%Y-%m-%d}"
