"""Text out of plain text, Markdown and tables of values."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from operator import itemgetter
from typing import Any

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.tables import MOST_TITLES, row_line, titles_above
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.normalization import decode, single_line, title_from

_DELIMITERS = ",;\t|"
SAMPLE_ROWS = 100
"""Rows that show the delimiter of a table."""
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_TOP_HEADING = re.compile(r"^# +(\S.*)$", re.MULTILINE)
UNDERLINED = re.compile(r"^(\S.*)\n([=\-~^*#\"'+.:_`])\2{2,}[ \t]*$", re.MULTILINE)
ASCIIDOC_TITLE = re.compile(r"^= +(\S.*)$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{,65536}?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_CLOSING_MARKS = re.compile(r"(?<=[ \t])#+$")


def read_plain(data: bytes) -> Content:
    """Return the text; plain text has no title."""
    return Content(None, [Section(decode(data))])


def read_markdown(data: bytes) -> Content:
    """Return a Markdown file without its front matter; its title is that of the front matter, or the first heading of
    the first level outside code.
    """
    about, text = _front_matter(decode(data))
    heading = _TOP_HEADING.search(_FENCED.sub("", text))
    title = about.get("title") or (heading and _CLOSING_MARKS.sub("", heading[1].rstrip()))
    return Content(
        title_from(str(title or "")),
        [Section(text)],
        author=about.get("author") or about.get("authors"),
        date=about.get("date"),
        tags=about.get("tags") or about.get("keywords"),
    )


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the scalars and lists of scalars of the YAML at the beginning of a file, and the text after it.

    A beginning that is no YAML, and a file that consists of nothing else, are text.
    """
    import yaml  # type: ignore[import-untyped]

    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text
    try:
        about = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(about, dict):
        return {}, text
    kept = {
        str(name).lower(): value
        for name, value in about.items()
        if all(isinstance(each, str | int | float | date) for each in (value if isinstance(value, list) else [value]))
    }
    return kept, text[found.end() :] if text[found.end() :].strip() else text


def read_headed(heading: re.Pattern[str], data: bytes) -> Content:
    """Return a file whose title is the first match of a pattern: UNDERLINED or ASCIIDOC_TITLE."""
    text = decode(data)
    found = heading.search(text)
    return Content(found and title_from(found[1]), [Section(text)])


def read_table(data: bytes) -> Content:
    """Return one line per row, "column: value; column: value", so that a row can be found and read by itself."""
    lines = decode(data).splitlines(keepends=True)
    stated = re.fullmatch(r"sep=(.)\s*", lines[0], re.IGNORECASE) if lines else None
    delimiter = stated[1] if stated else _delimiter(lines)
    try:
        rows = csv.reader(lines[1:] if stated else lines, delimiter=delimiter)
        return Content(None, [Section("\n".join(_rows([row for row in rows if any(map(str.strip, row))])))])
    except csv.Error as error:
        raise DocumentError(f"is not a readable table ({error}). Check its quotes and separators.") from error


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that gives most rows the same number of cells, the most frequent if several do."""
    first_line = next(filter(str.strip, lines), "")

    def fitness(delimiter: str) -> tuple[float, int]:
        with suppress(csv.Error):
            widths = Counter(len(row) for row in csv.reader(lines[:SAMPLE_ROWS], delimiter=delimiter) if row)
            width, count = max(widths.items(), key=itemgetter(1), default=(0, 0))
            if width > 1:
                return count / widths.total(), first_line.count(delimiter)
        return 0, first_line.count(delimiter)

    return max(_DELIMITERS, key=fitness)


def _rows(rows: list[list[str]]) -> Iterator[str]:
    above = titles_above(rows[: MOST_TITLES + 1])
    yield from (single_line(row[0]) for row in rows[:above])
    header, *body = rows[above:] or [[]]
    names = [title_from(name) or "" for name in header]
    yield from (row_line(names, row) for row in body)
