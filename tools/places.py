"""Places of passages in their files, as citations show them: pages, slides, rows and chapters."""

import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from operator import itemgetter

from sleuth.tools.types import Hit

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: a chapter by its name, or pages, slides or rows by their first and last numbers.

    `Place("p.", 3)` is page 3, `Place("Prices, rows", 2, 11)` rows of a sheet, `Place("The mill")` a chapter. A label
    is shown for the first number: `Place("p.", 5, label="1")` is the fifth page, on which 1 is printed, and
    `Place("", 5, label="0:01:30")` the time of the fifth subtitle.
    """

    name: str
    first: int = 0
    last: int = 0
    label: str = ""


Marks = tuple[tuple[int, Place], ...]
"""Characters of a text at which places begin, in order."""


def places_within(marks: Marks, start: int, end: int) -> str:
    """Return the places of the characters from `start` to `end`, if there are several, for `quote_location`."""
    places = [(max(at - start, 0), place) for at, place in _marks_within(marks, start, end)]
    return json.dumps([[at, *astuple(place)] for at, place in places]) if len(places) > 1 else ""


def _marks_within(marks: Marks, start: int, end: int) -> Marks:
    """Return the last mark up to `start`, and those between it and `end`."""
    begin, stop = bisect_right(marks, start, key=itemgetter(0)), bisect_left(marks, end, key=itemgetter(0))
    return marks[max(begin - 1, 0) : max(begin, stop)]


def quote_location(places: str, start: int, end: int) -> str:
    """Return the place of the characters from `start` to `end` of a passage with the given places."""
    return location(tuple((at, Place(*place)) for at, *place in json.loads(places)), start, end)


def at_words(hit: Hit, words: str) -> Hit:
    """Return a hit with the one of the places of its passage that has most of some words, if only one has as many."""
    passage, terms = hit.passage, set(_WORD.findall(words.casefold()))
    starts = [start for start, *_ in json.loads(passage.places)] if passage.places else []
    spans = list(pairwise([*starts, len(passage.text)]))
    counts = [len(terms & set(_WORD.findall(passage.text[start:end].casefold()))) for start, end in spans]
    if not counts or counts.count(max(counts)) > 1:
        return hit
    place = quote_location(passage.places, *spans[counts.index(max(counts))])
    return replace(hit, passage=replace(passage, location=place))


def location(marks: Marks, start: int, end: int) -> str:
    """Return the places of the characters from `start` to `end`, as in "p. 3–4"; empty if they are in none."""
    places = [place for _, place in _marks_within(marks, start, end)]
    if not places:
        return ""
    first, last = places[0], places[-1]
    if first.name == last.name:
        return _shown(first, last)
    return f"{_shown(first, first)} – {_shown(last, last)}"


def _shown(first: Place, last: Place) -> str:
    """Return the text of a range of places of the same name."""
    numbers = first.first, last.last or last.first
    if not first.first:
        return first.name
    if first.label or last.label:
        labels = _range(first.label or f"{first.first}", last.label or f"{last.first}")
        return f"{first.name} {labels}, {_range(*map(_ordinal, numbers))} page" if first.name else labels
    is_one_row = numbers[0] == numbers[1] and first.name.endswith(", rows")
    return f"{first.name.removesuffix('s') if is_one_row else first.name} {_range(*map(str, numbers))}"


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first}–{last}"


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < number % 100 < 14 else endings.get(number % 10, 'th')}"
