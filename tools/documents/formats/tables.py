"""Tables of all formats: cells in their columns, and Markdown in pieces that fit a passage: each repeats the header."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, repeat

from sleuth.tools.documents.formats.marks import HIDDEN
from sleuth.tools.text.markdown import markdown_table
from sleuth.tools.text.normalization import single_line

TABLE_CHARS = 700
"""Maximum length of a piece; a passage has room for it."""
MOST_TITLES = 5
"""Rows above a header that can be titles."""

MAX_SPAN = 1_000
"""Columns to which a cell extends at most, and columns of cells that extend to the next row."""
MAX_REPEATED = 300
"""Characters of a text that is repeated in each row that it covers; a longer one is shown once."""

Numbered = tuple[int, Sequence[str]]
"""A row with its number."""


@dataclass(frozen=True, slots=True)
class Span:
    """A cell over several columns or rows; one without a text continues the cell above it."""

    text: str | None
    columns: int = 1
    rows: int = 1


Cells = Sequence[str | Span | None]
"""The cells of a row; None is one that another cell covers."""
Table = list[list[str | Span | None]]
"""Rows of cells, each at its place in the list."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """A cell with the row and the column in which it begins."""

    text: str
    row: int
    column: int


_Line = Mapping[int, _Cell]
"""The cells of a row by their columns."""

_MARKDOWN_TABLE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"  # code, which stays as it is
    r"|^ {0,3}\|?[^\n|]+\|[^\n]*\n {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:?)?[ \t]*(?:\n(?=[^\n]*\|)[^\n]+)+",
    re.MULTILINE | re.DOTALL,
)
_BAR = re.compile(r"(?<!\\)\|")


def table_pieces(rows: Iterable[tuple[int, Cells]], *, headers: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield a table in pieces with the numbers of their first and last rows; the titles above it are pieces too.

    The first row below the titles is the header, unless `grid` finds or is given more. If the header or a row is too
    long for a piece, each row becomes a line "column: value; column: value".
    """
    filled = [(number, cells) for number, cells in grid(rows, headers=headers) if any(map(str.strip, cells))]
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


def grid(rows: Iterable[tuple[int, Cells]], *, headers: int = 0) -> list[Numbered]:
    """Return rows with every cell in its column; the value of a spanning cell is in each row and column that it covers.

    Header rows are joined. A row of one cell from the first column on is a heading: its text is in that column only.
    Columns in which no text begins, and rows that only continue the ones above, are left out.

    Args:
        rows: the rows with their numbers.
        headers: the number of rows that are the header; 0 if the file does not declare it.
    """
    numbered = list(rows)
    if headers < 2 and all(isinstance(cell, str) for _, cells in numbered for cell in cells):
        return [(number, [cell for cell in cells if isinstance(cell, str)]) for number, cells in numbered]
    lines = [(at, line) for at, line in enumerate(_place([cells for _, cells in numbered])) if _begins(at, line)]
    columns = sorted({cell.column for _, line in lines for cell in _filled(line)})
    texts = [_texts(at, line, columns) for at, line in lines]
    top = titles_above(texts[: MOST_TITLES + 1])
    end = sum(at < headers for at, _ in lines) if headers else _header_end(lines, top, columns)
    if top + 1 < end < len(lines):
        names = zip(*texts[top:end], strict=True)
        texts[top:end] = [[" ".join(name for name, _ in groupby(filter(None, parts))) for parts in names]]
        lines[top:end] = [lines[end - 1]]
    return [(numbered[at][0], cells) for (at, _), cells in zip(lines, texts, strict=True)]


def _place(rows: Sequence[Cells]) -> Iterator[_Line]:
    """Yield the cells of each row by their columns."""
    above: _Line = {}
    covering: dict[int, tuple[_Cell, int]] = {}
    for at, cells in enumerate(rows):
        line = {column: cell for column, (cell, _) in covering.items()}
        covering = {column: (cell, left - 1) for column, (cell, left) in covering.items() if left > 1}
        column = 0
        for content in (cell for cell in cells if cell is not None):
            span = content if isinstance(content, Span) else Span(content)
            while column in line:
                column += 1
            cell = above.get(column) if span.text is None else None
            cell = cell or _Cell((span.text or "").strip(), at, column)
            for covered in range(column, max(column + 1, min(column + span.columns, MAX_SPAN))):
                line.setdefault(covered, cell)
                if span.rows > 1 and len(covering) < MAX_SPAN:
                    covering.setdefault(covered, (cell, span.rows - 1))
            column += span.columns
        yield line
        above = line


def _filled(line: _Line) -> set[_Cell]:
    return {cell for cell in line.values() if cell.text}


def _begins(at: int, line: _Line) -> bool:
    """Return whether a text begins in a row."""
    return any(cell.row == at for cell in _filled(line))


def _texts(at: int, line: _Line, columns: Sequence[int]) -> list[str]:
    is_heading = len(_filled(line)) == 1 and _filled(line).pop().column == columns[0]

    def text(column: int) -> str:
        cell = line.get(column)
        is_first = cell is not None and (cell.row, cell.column) == (at, column)
        return cell.text if cell and (is_first or (len(cell.text) <= MAX_REPEATED and not is_heading)) else ""

    return [text(column) for column in columns]


def _header_end(lines: Sequence[tuple[int, _Line]], top: int, columns: Sequence[int]) -> int:
    """Return the end of a header: a group of columns has their names in the next row, and other columns only one."""
    for end in range(top + 1, len(lines)):
        above, (at, line) = lines[end - 1][1], lines[end]
        groups = [cell for cell in _filled(above) if len({line.get(c) for c in columns if above.get(c) is cell}) > 1]
        single = [c for c in columns if above.get(c) not in groups]
        reaches = end > top + 1 and any(cell.row < at for cell in _filled(line))
        if not (groups or reaches) or any(_differ(above.get(c), line.get(c)) for c in single):
            return end
    return len(lines)


def _differ(above: _Cell | None, below: _Cell | None) -> bool:
    return above is not below and bool(above and above.text) and bool(below and below.text)


def mark_hidden(table: Table, rows: Iterable[int], columns: Iterable[int]) -> None:
    """Mark the first text of each hidden row and the name of each hidden column; all rows have the same length."""
    for row in rows:
        filled = [at for at, cell in enumerate(table[row]) if cell not in (None, "")]
        for at in filled[:1]:
            table[row][at] = _marked(table[row][at])
    top = next((at for at, cells in enumerate(table) if sum(map(bool, cells)) > 1), 0)
    for column in columns:
        named = [row for row in range(top, len(table)) if not _is_group(table[row][column])]
        if named and any(cells[column] for cells in table):
            table[named[0]][column] = _marked(table[named[0]][column])


def _is_group(cell: str | Span | None) -> bool:
    return cell is None or (isinstance(cell, Span) and cell.columns > 1)


def _marked(cell: str | Span | None) -> str | Span:
    if isinstance(cell, Span):
        return replace(cell, text=f"{HIDDEN} {cell.text or ''}".strip())
    return f"{HIDDEN} {cell or ''}".strip()


def titles_above(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of rows that only have a first cell, above one with more: titles of the table."""
    widths = [sum(map(bool, map(str.strip, cells))) for cells in rows]
    above = next((at for at, width in enumerate(widths) if width > 1), 0)
    return above if all(rows[at][0].strip() for at in range(above)) else 0


def repeat_headers(text: str) -> str:
    """Return Markdown in which tables that are too long for a passage are in pieces with their header."""
    return _MARKDOWN_TABLE.sub(lambda match: match[0] if match["fence"] else _in_pieces(match[0]), text)


def _in_pieces(table: str) -> str:
    lines = [line.strip() for line in table.split("\n")]
    if len(table) <= TABLE_CHARS:
        return table
    rows = [_BAR.split(line.removeprefix("|").removesuffix("|")) for line in (lines[0], *lines[2:])]
    return markdown_tables([[cell.strip().replace("\\|", "|") for cell in row] for row in rows])


def markdown_tables(rows: Iterable[Cells], *, headers: int = 0) -> str:
    """Return a table in pieces, separated by empty lines."""
    return "\n\n".join(text for text, _, _ in table_pieces(enumerate(rows, start=1), headers=headers))


def _piece(header: Sequence[str], rows: Sequence[Numbered]) -> tuple[str, int, int]:
    return markdown_table([header, *(cells for _, cells in rows)]), rows[0][0], rows[-1][0]


def _length(cells: Sequence[str]) -> int:
    return sum(len(single_line(cell)) + 3 for cell in cells) + 2


def row_line(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row as "column: value; column: value", so that it can be found and read by itself."""
    named = zip(chain(header, repeat("")), map(single_line, cells), strict=False)
    return "; ".join(f"{single_line(name)}: {value}" if name.strip() else value for name, value in named if value)
