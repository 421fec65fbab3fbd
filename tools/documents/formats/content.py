"""The text of a file in sections, each with its place in the file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from itertools import accumulate, pairwise

from sleuth.tools.errors import DocumentError, MissingExtra, SleuthError, extra
from sleuth.tools.places import Marks, Place
from sleuth.tools.storage.filters import RESERVED
from sleuth.tools.text.normalization import normalize, single_line, title_from


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a file's text; a section without a place has that of the section before it."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The title of a file, if it has one, its text, its own properties in any form, and a remark about the reading.

    `meta`: its further properties by name.
    """

    title: str | None
    sections: Sequence[Section]
    author: object = None
    date: object = None
    tags: object = None
    note: str = ""
    meta: object = None


@contextmanager
def damage_of(kind: str) -> Iterator[None]:
    """Raise DocumentError for whatever the reading of a file raises; `kind` names its format, as "a .pdf file"."""
    try:
        yield
    except (SleuthError, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(f"is not {kind}, or is damaged. Save it again, or leave it out.") from error


@contextmanager
def office_extra(suffixes: str, other: str) -> Iterator[None]:
    """Wrap the import of a package that comes with the extra `office`, without which files with a suffix are not read.

    Raises:
        DocumentError: the package is not installed; the message also names the `other` suffix to save the file with.
    """
    try:
        with extra("office", f"Reading {suffixes} files"):
            yield
    except MissingExtra as error:
        raise DocumentError(f"cannot be read. {error} Or save the file as {other}.") from error


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
    row_places: list[tuple[int, Place]] = []
    for (at, place), (end, _) in pairwise([*marks, (len(text), Place(""))]):
        row_places.append((at, place))
        _, rule, body = text[at:end].rstrip().partition(" --- |\n")
        lines = body.split("\n") if rule else []
        if len(lines) > 1 and len(lines) == place.last - place.first + 1:
            starts = accumulate((len(line) + 1 for line in lines[:-1]), initial=text.index(rule, at) + len(rule))
            row_places += [(start, Place(place.name, number)) for number, start in enumerate(starts, start=place.first)]
    return tuple(row_places)


MAX_TAGS = 50
MAX_META = 50
MAX_META_CHARS = 500
_META_NAME = re.compile(r"[a-z][\w-]{0,63}")
_TAG_SEPARATORS = re.compile(r"[,;\n]")
_NUMERIC_DATE = re.compile(r"(?:D:)?(\d{4})-?(\d{2})-?(\d{2})")
_MONTH = re.compile(r"[12]\d{3}(?:-(?:0[1-9]|1[0-2]))?")  # or a year


def clean_author(value: object) -> str:
    """Return the author or authors of a file on one line."""
    names = value if isinstance(value, list | tuple) else [value]
    return ", ".join(filter(None, (title_from(normalize(str(name))) for name in names if name)))


def clean_tags(value: object) -> tuple[str, ...]:
    """Return the tags of a file in lower case, sorted; a text is split at commas, semicolons and line ends."""
    values = value if isinstance(value, list | tuple) else [value]
    parts = (part for item in values if item for part in _TAG_SEPARATORS.split(normalize(str(item))))
    tags = {tag for part in parts if (tag := (title_from(part) or "").lower())}
    return tuple(sorted(tags)[:MAX_TAGS])


def clean_meta(metadata: object) -> dict[str, str]:
    """Return the own fields of a file, by names in lower case, without nested values and names of other fields."""
    meta: dict[str, str] = {}
    for key, value in metadata.items() if isinstance(metadata, Mapping) else ():
        name = "_".join(normalize(str(key)).lower().split())
        values = value if isinstance(value, list | tuple) else [value]
        is_flat = all(isinstance(item, str | int | float | date) for item in values)
        if _META_NAME.fullmatch(name) and name not in RESERVED and is_flat and len(meta) < MAX_META:
            texts = (str(item).lower() if isinstance(item, bool) else normalize(str(item)) for item in values)
            meta[name] = single_line(", ".join(texts))[:MAX_META_CHARS]
    return {name: text for name, text in meta.items() if text}


def clean_date(value: object) -> str:
    """Return the date of a file as ISO 8601 (2025-01-31, 2025-01 or 2025); empty if it cannot be read."""
    if isinstance(value, date):  # also a datetime
        return date(value.year, value.month, value.day).isoformat()
    text = str(value or "").strip()
    if match := _NUMERIC_DATE.match(text):
        text = "-".join(match.groups())
    if _MONTH.fullmatch(text):
        return text
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return parse(text).date().isoformat()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return ""
