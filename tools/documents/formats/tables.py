"""Tables as Markdown, in pieces that fit a passage: each repeats the header."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from sleuth.tools.text.normalization import markdown_table, single_line

TABLE_CHARS = 700
"""Maximum length of a piece; a passage has room for it."""
MOST_TITLES = 5
"""Rows above a header that can be titles."""

Numbered = tuple[int, Sequence[str]]
"""A row with its number."""

_MARKDOWN_TABLE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"  # code, which stays as it is
    r"|^ {0,3}\|?[^\n|]+\|[^\n]*\n {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:?)?[ \t]*(?:\n(?=[^\n]*\|)[^\n]+)+",
    re.MULTILINE | re.DOTALL,
)
_BAR = re.compile(r"(?<!\\)\|")


def table_pieces(rows: Sequence[Numbered]) -> Iterator[tuple[str, int, int]]:
    """Yield a table in pieces with the numbers of their first and last rows; the titles above it are pieces too.

    The first row below the titles is the header. If the header or a row is too long for a piece, each row becomes a
    line "column: value; column: value".
    """
    filled = [(number, cells) for number, cells in rows if any(cell.strip() for cell in cells)]
    above = titles_above([cells for _, cells in filled[: MOST_TITLES + 1]])
    yield from ((single_line(cells[0]), number, number) for number, cells in filled[:above])
    if not filled:
        return
    (top, header), *body = filled[above:]
    if not body:
        yield markdown_table([header]), top, top
        return
    room = TABLE_CHARS - 2 * _length(header)
    if any(_length(cells) > room for _, cells in body):
        for number, cells in body:
            yield row_line(header, cells), number, number
        return
    piece: list[Numbered] = []
    used = 0
    for number, cells in body:
        if piece and used + _length(cells) > room:
            yield _piece(header, piece)
            piece, used = [], 0
        piece.append((number, cells))
        used += _length(cells)
    yield _piece(header, piece)


def titles_above(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of rows that only have a first cell, above one with more: titles of the table."""
    widths = [sum(map(bool, map(str.strip, cells))) for cells in rows]
    above = next((at for at, width in enumerate(widths) if width > 1), 0)
    return above if all(rows[at][0].strip() for at in range(above)) else 0


def repeat_headers(text: str) -> str:
    """Return Markdown in which tables that are too long for a passage are in pieces with their header."""
    return _MARKDOWN_TABLE.sub(lambda found: found[0] if found["fence"] else _in_pieces(found[0]), text)


def _in_pieces(table: str) -> str:
    lines = [line.strip() for line in table.split("\n")]
    if len(table) <= TABLE_CHARS:
        return table
    rows = [_BAR.split(line.removeprefix("|").removesuffix("|")) for line in (lines[0], *lines[2:])]
    return markdown_tables([[cell.strip().replace("\\|", "|") for cell in row] for row in rows])


def markdown_tables(rows: Sequence[Sequence[str]]) -> str:
    """Return a table in pieces, separated by empty lines."""
    return "\n\n".join(text for text, _, _ in table_pieces(list(enumerate(rows, start=1))))


def _piece(header: Sequence[str], rows: Sequence[Numbered]) -> tuple[str, int, int]:
    return markdown_table([header, *(cells for _, cells in rows)]), rows[0][0], rows[-1][0]


def _length(cells: Sequence[str]) -> int:
    return sum(len(single_line(cell)) + 3 for cell in cells) + 2


def row_line(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row as "column: value; column: value", so that it can be found and read by itself."""
    named = zip(chain(header, repeat("")), map(single_line, cells), strict=False)
    return "; ".join(f"{single_line(name)}: {value}" if name.strip() else value for name, value in named if value)
