"""The text of a file in sections, each with its place in the file."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from itertools import accumulate, pairwise
from operator import itemgetter

from sleuth.tools.errors import DocumentError, SleuthError
from sleuth.tools.text.normalization import normalize, title_from
from sleuth.tools.types import Hit


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: a chapter by its name, or pages, slides or rows by their first and last numbers.

    `Place("p.", 3)` is page 3, `Place("Prices, rows", 2, 11)` rows of a sheet, `Place("The mill")` a chapter.
    """

    name: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a file's text; without a place, that of the one before applies."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The title of a file, if it has one, its text, its own properties in any form, and a remark about the reading."""

    title: str | None
    sections: Sequence[Section]
    author: object = None
    date: object = None
    tags: object = None
    note: str = ""


@contextmanager
def damage_as(message: str) -> Iterator[None]:
    """Raise DocumentError with this message for any error of a library that parses a damaged file; also a decorator."""
    try:
        yield
    except (SleuthError, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(message) from error


Marks = tuple[tuple[int, Place], ...]
"""Characters of a text at which places begin, in order."""

SEPARATOR = "\n\n"


def join_sections(sections: Iterable[Section]) -> tuple[str, Marks]:
    """Return the text of sections, without empty ones, and where their places begin in it."""
    texts: list[str] = []
    marks: list[tuple[int, Place]] = []
    length = 0
    for section in sections:
        if section.text.strip():
            if section.place:
                marks.append((length, section.place))
            texts.append(section.text)
            length += len(section.text) + len(SEPARATOR)
    return SEPARATOR.join(texts), tuple(marks)


def parts(marks: Marks, length: int) -> Iterator[tuple[int, int]]:
    """Yield the starts and ends of a text's sheets, chapters and mails, which no passage crosses."""
    names = [(0, ""), *((at, place.name) for at, place in marks)]
    starts = [at for (_, before), (at, name) in pairwise(names) if at and name != before]
    yield from pairwise([0, *starts, length])


def row_marks(text: str, marks: Marks) -> Marks:
    """Return the marks with one for each row of a table; rows are only counted where none of its range is empty."""
    found: list[tuple[int, Place]] = []
    for (at, place), (end, _) in pairwise([*marks, (len(text), Place(""))]):
        found.append((at, place))
        _, rule, body = text[at:end].rstrip().partition(" --- |\n")
        lines = body.split("\n") if rule else []
        if len(lines) > 1 and len(lines) == place.last - place.first + 1:
            starts = accumulate((len(line) + 1 for line in lines[:-1]), initial=text.index(rule, at) + len(rule))
            found += [(start, Place(place.name, number)) for number, start in enumerate(starts, start=place.first)]
    return tuple(found)


def places_within(marks: Marks, start: int, end: int) -> str:
    """Return the places of the characters from `start` to `end`, if there are several, for `quote_location`."""
    places = [(max(at - start, 0), place) for at, place in _marks_within(marks, start, end)]
    return json.dumps([[at, place.name, place.first, place.last] for at, place in places]) if len(places) > 1 else ""


def _marks_within(marks: Marks, start: int, end: int) -> Marks:
    """Return the last mark up to `start`, and those between it and `end`."""
    begin, stop = bisect_right(marks, start, key=itemgetter(0)), bisect_left(marks, end, key=itemgetter(0))
    return marks[max(begin - 1, 0) : max(begin, stop)]


def quote_location(places: str, start: int, end: int) -> str:
    """Return the place of the characters from `start` to `end` of a passage with the given places."""
    return location(tuple((at, Place(name, first, last)) for at, name, first, last in json.loads(places)), start, end)


def at_words(hit: Hit, words: str) -> Hit:
    """Return a hit with the one of the places of its passage that has most of some words, if only one has as many."""
    passage, wanted = hit.passage, set(_WORD.findall(words.casefold()))
    starts = [start for start, *_ in json.loads(passage.places)] if passage.places else []
    spans = list(pairwise([*starts, len(passage.text)]))
    counts = [len(wanted & set(_WORD.findall(passage.text[start:end].casefold()))) for start, end in spans]
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
        return _label(Place(first.name, first.first, last.last or last.first))
    return f"{_label(first)} – {_label(last)}"


def _label(place: Place) -> str:
    if not place.first:
        return place.name
    last = place.last or place.first
    if last == place.first and place.name.endswith(", rows"):
        return f"{place.name.removesuffix('s')} {last}"
    return f"{place.name} {place.first}" if last == place.first else f"{place.name} {place.first}–{last}"


_WORD = re.compile(r"\w+")
MAX_TAGS = 50
_TAG_SEPARATORS = re.compile(r"[,;\n]")
_NUMERIC_DATE = re.compile(r"(?:D:)?(\d{4})-?(\d{2})-?(\d{2})")


def clean_author(found: object) -> str:
    """Return the author or authors of a file on one line."""
    names = found if isinstance(found, list | tuple) else [found]
    return ", ".join(filter(None, (title_from(normalize(str(name))) for name in names if name)))


def clean_tags(found: object) -> tuple[str, ...]:
    """Return the tags of a file in lower case, sorted; a text is split at commas, semicolons and line ends."""
    given = found if isinstance(found, list | tuple) else [found]
    parts = (part for each in given if each for part in _TAG_SEPARATORS.split(normalize(str(each))))
    tags = {tag for part in parts if (tag := (title_from(part) or "").lower())}
    return tuple(sorted(tags)[:MAX_TAGS])


def clean_date(found: object) -> str:
    """Return the date of a file as ISO 8601 (2025-01-31); empty if it cannot be read."""
    if isinstance(found, date):  # also a datetime
        return date(found.year, found.month, found.day).isoformat()
    text = str(found or "").strip()
    if match := _NUMERIC_DATE.match(text):
        text = "-".join(match.groups())
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return parse(text).date().isoformat()
        except (ValueError, TypeError, IndexError):
            continue
    return ""
