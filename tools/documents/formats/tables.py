"""Tables as Markdown, in pieces that fit a passage: each repeats the header."""

from collections.abc import Iterator, Sequence

from sleuth.tools.text import markdown_table, single_line

TABLE_CHARS = 700
"""Maximum length of a piece; a passage has room for it."""

Numbered = tuple[int, Sequence[str]]
"""A row with its number."""


def table_pieces(rows: Sequence[Numbered]) -> Iterator[tuple[str, int, int]]:
    """Yield a table, whose first row is the header, in pieces with the numbers of their first and last rows.

    If the header or a row is too long for that, each row becomes a line "column: value; column: value".
    """
    filled = [(number, cells) for number, cells in rows if any(cell.strip() for cell in cells)]
    if not filled:
        return
    (top, header), *body = filled
    if not body:
        yield markdown_table([header]), top, top
        return
    room = TABLE_CHARS - 2 * _length(header)
    if any(_length(cells) > room for _, cells in body):
        for number, cells in body:
            yield _as_line(header, cells), number, number
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


def markdown_tables(rows: Sequence[Sequence[str]]) -> str:
    """Return a table in pieces, separated by empty lines."""
    return "\n\n".join(text for text, _, _ in table_pieces(list(enumerate(rows, start=1))))


def _piece(header: Sequence[str], rows: Sequence[Numbered]) -> tuple[str, int, int]:
    return markdown_table([header, *(cells for _, cells in rows)]), rows[0][0], rows[-1][0]


def _length(cells: Sequence[str]) -> int:
    return sum(len(single_line(cell)) + 3 for cell in cells) + 2


def _as_line(header: Sequence[str], cells: Sequence[str]) -> str:
    names = [*map(single_line, header), *[""] * (len(cells) - len(header))]
    named = [(name, single_line(cell)) for name, cell in zip(names, cells, strict=False)]
    return "; ".join(f"{name}: {value}" if name else value for name, value in named if value)
