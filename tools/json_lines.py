"""Files of JSON Lines whose lines have a known form."""

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sleuth.tools.errors import UsageError

T = TypeVar("T")

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
_BOM = b"\xef\xbb\xbf"


def read_lines_as(kind: type[T], path: Path, *, form: str) -> Iterator[tuple[int, T]]:
    """Yield the lines of a file, plain or packed (.gz, .bz2), with their numbers from 1; empty lines are left out.

    Args:
        kind: the type of a line, for pydantic.
        path: the file.
        form: a sentence for the message about an invalid line.

    Raises:
        UsageError: the file cannot be read, or a line is invalid; names file and line.
    """
    adapter, number = TypeAdapter(kind), 0
    opener: Callable[..., Any] = _OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield number, adapter.validate_json(raw.removeprefix(_BOM))
    except ValidationError as error:
        faults = ((".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors())
        reason = "; ".join(f"{place}: {message}" if place else message for place, message in faults)
        raise UsageError(f"{path}, line {number}: {reason}. {form}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
