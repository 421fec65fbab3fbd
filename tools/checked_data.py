"""Data that is checked before it is used: JSON from outside, and data files of the package."""

import math
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from sleuth.tools.errors import UsageError
from sleuth.tools.text.normalization import sanitize

MOST_LEVELS = 100
"""Lists and objects inside each other. Pydantic writes JSON of 255 levels, but does not read it again."""

TOO_DEEP = f"The JSON is nested deeper than {MOST_LEVELS} levels: send it flatter."
_INTEGERS = range(-(2**63), 2**63)


def check_json(value: object) -> None:
    """Raise UsageError for a JSON value that cannot be stored; the message names its place, such as `metadata.title`.

    Texts and keys have to be Unicode without NUL, integers fit into 64 bits, and other numbers be finite.
    """
    unchecked: list[tuple[tuple[str, ...], object]] = [((), value)]
    while unchecked:
        place, each = unchecked.pop()
        if len(place) > MOST_LEVELS:
            raise UsageError(TOO_DEEP)
        if fault := _fault_of(each):
            raise UsageError(f"{'.'.join(place) or 'The JSON'} {fault}.")
        items = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, part in items:
            inside = (*place, ascii(key)[1:-1][:100] if isinstance(key, str) else str(key))
            unchecked += [(inside, key), (inside, part)]


def _fault_of(value: object) -> str:
    """Return what is wrong with a text or number; empty if nothing is."""
    match value:
        case str() if value != sanitize(value):
            return "contains the character NUL or half of a surrogate pair: remove it"
        case int() if value not in _INTEGERS:
            return "is an integer of more than 64 bits: send it as a text"
        case float() if not math.isfinite(value):
            return "is not a finite number: send null"
    return ""


T = TypeVar("T")


def read_toml(file: Path, form: type[T]) -> T:
    """Return the content of a TOML file as a type that pydantic validates, such as `dict[str, Model]`.

    Raises:
        ValueError: the file is not TOML, or its content does not fit the type; the message names the file and place.
    """
    try:
        return TypeAdapter(form).validate_python(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"The data file {file} cannot be used: {error}") from error
