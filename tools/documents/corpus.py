"""A corpus in JSON Lines, plain or gzipped: one {"id", "title", "text"} per line, read as a stream.

A line may also have "author", "date", "tags" and fields of its own.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

from sleuth.tools.documents.formats.content import clean_author, clean_date, clean_meta, clean_tags
from sleuth.tools.documents.loading import LoadedDocument, PassageSpan
from sleuth.tools.documents.resource_limits import ordinary_size, printable
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.encoded_data import without_encoded_data
from sleuth.tools.text.normalization import normalize, title_from

MAX_LINE_BYTES = 8 << 20
MAX_PASSAGE_CHARS = 100_000
"""A model reads a passage as a whole; a book is a document, which is split into passages."""
MAX_ID_CHARS = 512
_FIRST_LINES = 20
"""Lines that are read to find out whether a file is a corpus."""
_MOST_UNPACKED = 100
"""Times its size to which a gzipped corpus may unpack, beyond the first line's bytes; texts reach ten."""


def is_corpus(path: Path) -> bool:
    """Return whether the name is that of a corpus: .jsonl or .jsonl.gz. A file of other JSON Lines is none."""
    name = path.name.lower()
    return name.endswith(".jsonl.gz") or (name.endswith(".jsonl") and not _has_other_lines(path))


def _has_other_lines(path: Path) -> bool:
    """Return whether no line at the beginning of a file is of a corpus, and one is another JSON object."""
    values = []
    with suppress(OSError, DocumentError):
        ordinary_size(path)
        with path.open("rb") as file:
            for raw in islice(iter(lambda: file.readline(MAX_LINE_BYTES), b""), _FIRST_LINES):
                with suppress(ValueError, RecursionError):
                    values.append(json.loads(raw.decode("utf-8-sig")))
    objects = [value for value in values if isinstance(value, dict)]
    return bool(objects) and not any({"id", "text"} <= value.keys() for value in objects)


def read_corpus(path: Path) -> Iterator[LoadedDocument | DocumentError]:
    """Yield a document of one passage for each line, in order, and an error for each line that cannot be used.

    A line without a title has its id for a title. A repeated id is an error at its second line: the first one is kept.
    """
    seen: dict[str, int] = {}
    name, number = printable(path), 0
    try:
        for number, raw in _raw_lines(path):
            if raw.strip():
                yield _line(raw, seen, name, number)
    except DocumentError as error:
        yield DocumentError(f"{name}: {error}")
        return
    except (OSError, EOFError, zlib.error) as error:
        place = f"breaks off after line {number}" if number else "cannot be read"
        yield DocumentError(f"{name}: {place} ({error}). Get the file again; the lines before that are kept.")
        return
    if not seen:
        yield DocumentError(f'{name}: no usable line. Each line must be {{"id": "…", "title": "…", "text": "…"}}.')


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield line numbers from 1, and lines; an overlong line is truncated, but stays recognizable as overlong.

    Raises OSError if a line, or the unpacked file, exceeds the limits.
    """
    size, packed = ordinary_size(path), path.suffix.lower() == ".gz"
    limit = MAX_LINE_BYTES + _MOST_UNPACKED * size if packed else math.inf
    with gzip.open(path) if packed else path.open("rb") as file:
        for number in count(1):
            raw = piece = file.readline(MAX_LINE_BYTES + 1)
            while len(piece) > MAX_LINE_BYTES and not piece.endswith(b"\n") and file.tell() <= limit:
                piece = file.readline(MAX_LINE_BYTES + 1)
            if file.tell() > limit:
                raise OSError(f"it unpacks to more than {_MOST_UNPACKED} times its size")
            if not raw:
                return
            yield number, raw


def _line(raw: bytes, seen: dict[str, int], path: str, number: int) -> LoadedDocument | DocumentError:
    """Return the passage on a line, whose id is added to `seen`, or what is wrong with it."""
    try:
        line = _parse(raw)
    except RecursionError:
        return DocumentError(f"{path}, line {number}: is nested too deeply. The other lines are read.")
    except ValueError as error:
        return DocumentError(f"{path}, line {number}: {error}. The other lines are read.")
    if line.id in seen:
        return DocumentError(f"{path}, line {number}: the id {line.id!r} is already used on line {seen[line.id]}.")
    seen[line.id] = number
    return line


def _parse(raw: bytes) -> LoadedDocument:
    """Raise ValueError with the reason."""
    if len(raw) > MAX_LINE_BYTES:
        raise ValueError(f"is longer than {MAX_LINE_BYTES >> 20} MiB")
    value = json.loads(raw.decode("utf-8-sig"))
    if not isinstance(value, dict):
        raise ValueError('is not an object {"id": "…", "title": "…", "text": "…"}')
    identity, text, title = _id(value.get("id")), value.get("text"), value.get("title")
    if not isinstance(text, str) or not (text := normalize(text)).strip():
        raise ValueError('has no "text"')
    if len(text) > MAX_PASSAGE_CHARS:
        raise ValueError(
            f"its text has {len(text):,} characters, and a passage may have {MAX_PASSAGE_CHARS:,}; "
            "split it, or hand it in as a file of its own"
        )
    if title is not None and not isinstance(title, str):
        raise ValueError('its "title" is not a string')
    text = without_encoded_data(text)
    return LoadedDocument(
        id=identity,
        media_type="text/plain",
        title=title_from(normalize(title or "")) or identity,
        text=text,
        author=clean_author(value.get("author")),
        date=clean_date(value.get("date")),
        tags=clean_tags(value.get("tags")),
        meta=clean_meta(value),
        spans=(PassageSpan(0, len(text), ""),),
    )


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('has no "id" that is a string or a number')
    identity = " ".join(normalize(str(value)).split())
    if not identity:
        raise ValueError('its "id" is empty')
    if identity in {".", ".."}:
        raise ValueError(f'its "id" is {identity!r}, which no address can contain')
    if len(identity) > MAX_ID_CHARS:
        raise ValueError(f'its "id" has more than {MAX_ID_CHARS} characters')
    return identity
