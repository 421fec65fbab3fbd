"""Text out of plain text, Markdown and tables of values."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from io import StringIO
from itertools import pairwise
from operator import itemgetter
from typing import Any

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.tables import MOST_TITLES, row_line, titles_above
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.encodings import decode, decode_exactly
from sleuth.tools.text.normalization import single_line, title_from

_DELIMITERS = ",;\t|"
_STATED_DELIMITER = re.compile(r"\"?sep ?= ?([^\w\s\"]|\t)\"?[,;\t|\s]*", re.IGNORECASE)
"""The first line of a table for Excel, as Excel and other programs write it."""
SAMPLE_ROWS = 100
"""Rows that show the delimiter of a table."""
TITLE_CHARS = 100_000
"""Characters of a Markdown file that are searched for its first heading."""
_ADORNMENT = r"([=\-~^*#\"'+.:_`])"
_UNDERLINED = re.compile(
    rf"^(?:(?P<over>{_ADORNMENT}\2{{2,}})[ \t]*\n)?[ \t]{{0,4}}(?P<title>\S.*)\n(?P<under>{_ADORNMENT}\5{{2,}})[ \t]*$",
    re.MULTILINE,
)
_ASCIIDOC = re.compile(
    r"^(?P<block>-{4,}+|\.{4,}+|`{3})[^\n]*\n(?P<code>.*?)^(?P=block)[ \t]*$"
    r"|^(?P<level>={1,6}) +(?P<title>\S[^\n]*?)(?: =+)?$",
    re.MULTILINE | re.DOTALL,
)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{,65536}?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)


def read_plain(data: bytes) -> Content:
    """Return the text; plain text has no title."""
    return Content(None, [Section(decode(data))])


def read_markdown(data: bytes) -> Content:
    """Return a Markdown file without its front matter; its title is that of the front matter, or its first heading."""
    about, text = _front_matter(decode(data))
    return Content(
        title_from(str(about.get("title") or first_heading(text))),
        [Section(text)],
        author=about.get("author") or about.get("authors"),
        date=about.get("date"),
        tags=about.get("tags") or about.get("keywords"),
        meta=about,
    )


def first_heading(markdown: str) -> str:
    """Return the first heading of the first level outside code; empty if there is none."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt().disable("inline").parse(markdown[:TITLE_CHARS])
    headings = (
        inner.content for token, inner in pairwise(tokens) if token.type == "heading_open" and token.tag == "h1"
    )
    return next(headings, "")


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the scalars and lists of scalars of the YAML at the beginning of a file, and the text after it.

    A beginning that is no YAML, and a file that consists of nothing else, are text.
    """
    import yaml  # type: ignore[import-untyped]

    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    try:
        about = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(about, dict):
        return {}, text
    fields = {
        str(name).lower(): value
        for name, value in about.items()
        if all(isinstance(item, str | int | float | date) for item in (value if isinstance(value, list) else [value]))
    }
    return fields, text[match.end() :] if text[match.end() :].strip() else text


def read_rst(data: bytes) -> Content:
    """Return a reStructuredText file with its titles as headings of Markdown."""
    levels: dict[str, int] = {}

    def heading(match: re.Match[str]) -> str:
        over, under = match["over"] or "", match["under"]
        if over and over[0] != under[0]:
            return match[0]
        level = levels.setdefault(over[:1] + under[0], len(levels) + 1)
        return f"{'#' * min(level, 6)} {match['title'].rstrip()}"

    return _headed(_UNDERLINED.sub(heading, decode(data)))


def read_asciidoc(data: bytes) -> Content:
    """Return an AsciiDoc file with its titles as headings of Markdown, and its listings as code."""

    def convert(match: re.Match[str]) -> str:
        return f"```\n{match['code']}```" if match["block"] else f"{'#' * len(match['level'])} {match['title']}"

    return _headed(_ASCIIDOC.sub(convert, decode(data)))


def _headed(markdown: str) -> Content:
    return Content(title_from(first_heading(markdown)), [Section(markdown)])


def read_table(data: bytes) -> Content:
    """Return one line per row, "column: value; column: value", so that a row can be found and read by itself."""
    lines = list(StringIO(decode_exactly(data).replace("\x00", ""), newline=""))
    stated = _STATED_DELIMITER.fullmatch(lines[0]) if lines else None
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
