"""Values of nearly the right type in replies: converted where their meaning is plain, otherwise cut or dropped.

Pydantic walks the value: each `Output` calls `Leniency.as_object` with its value, and `read_field` with each field.
Dropped are a field with a default, or the entry of a list.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticUseDefault

_MOST_LOSSES = 100
"""Losses from which a reply is refused."""

_NUMBER = re.compile(r"(?<!\d)(?:(?<!\w)-)?\d{1,9}(?!\d)")
_NUMBERED = re.compile(r"\W*(?:[^\W\d]+\W*)?(\d{1,9})\W*")
_YES_OR_NO = re.compile(r"\W*(?:(yes|true)|no|false)\b", re.IGNORECASE)
_NEEDED = ("string_type", "string_too_short", "bool_type", "bool_parsing", "too_short")
"""Faults for which a whole reply is refused, if they are outside its lists."""

Read = Callable[[Any], Any]
"""Reads a value strictly, or raises ValidationError."""


class Leniency:
    """The context in which one output is read.

    Attributes:
        losses: what was cut or dropped, a line each.
        dropped: the fields of the output that were dropped.
    """

    def __init__(self) -> None:
        self.losses: list[str] = []
        self.dropped: set[str] = set()
        self._place: list[str] = []

    def as_object(self, value: Any, output: type[BaseModel]) -> Any:  # noqa: ANN401 - JSON
        """Return the object of an output inside another one: of a list of one, or for a bare number or text."""
        if isinstance(value, list) and len(value) == 1 and self._place:
            value = value[0]
        if value is None or isinstance(value, bool | dict | list) or not self._place:
            return value
        fields = sorted(output.model_fields.items(), key=lambda field: not field[1].is_required())
        named = {kind: next((name for name, field in fields if field.annotation is kind), None) for kind in (int, str)}
        number = _NUMBERED.fullmatch(as_text(value) or "")
        if number and named[int]:
            return {named[int]: int(number[1])}
        return {named[str]: as_text(value)} if named[str] else value

    def read_field(self, output: type[BaseModel], name: str, value: Any, read: Read) -> Any:  # noqa: ANN401 - JSON
        """Return the value of a field; its default is used if it cannot be read."""
        with self._at(name):
            try:
                return self._read(value, read, _entry_of(output, name))
            except ValidationError as error:
                fault = error.errors()[-1]
                is_needed = fault["type"] in _NEEDED and not any(each.isdigit() for each in self._place)
                if is_needed or output.model_fields[name].is_required():
                    raise
                self._drop(fault)
                self.dropped |= {name} if len(self._place) == 1 else set()
        raise PydanticUseDefault

    def _read(self, value: Any, read: Read, entry: "_Entry | None" = None) -> Any:  # noqa: ANN401 - JSON
        """Read a value, converted and cut as its faults ask for."""
        while True:
            if entry and isinstance(value, list):
                value, entry = self._entries(value, *entry), None
            try:
                return read(value)
            except ValidationError as error:
                fault = error.errors()[-1]
                converted = None if fault["loc"] else self._converted(value, fault)
                if converted is None or converted == value:
                    raise
                value = converted

    def _entries(self, value: list[Any], adapter: TypeAdapter[Any], most: int | None) -> list[Any]:
        """Return the entries of a list that can be read, at most as many as allowed."""
        if most is not None and len(value) > most:
            self._lose(f"was cut from {len(value)} to {most} entries")
        entries = []
        for at, each in enumerate(value[:most]):
            with self._at(str(at)):
                try:
                    entries.append(self._read(each, lambda given: adapter.validate_python(given, context=self)))
                except ValidationError as error:
                    self._drop(error.errors()[-1])
        return entries

    def _converted(self, value: Any, fault: ErrorDetails) -> Any:  # noqa: ANN401 - JSON
        """Return the value in the type or length that a fault asks for; None if its meaning is not plain."""
        kind, text, converted = fault["type"], as_text(value), None
        if kind == "string_too_long":
            most = fault["ctx"]["max_length"]
            self._lose(f"was cut from {len(value)} to {most} characters")
            converted = value[:most]
        elif kind == "string_type":
            converted = text
        elif kind == "list_type":
            converted = _as_list(value)
        elif kind.startswith("int_"):
            numbers = _NUMBER.findall(text or "")
            converted = int(numbers[0]) if len(numbers) == 1 else None
        elif kind.startswith("bool_") and (match := _YES_OR_NO.match(text or "")):
            converted = bool(match[1])
        elif kind == "literal_error":
            allowed = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
            begun = (each for each in allowed if re.match(rf"{re.escape(bare(each))}\b", bare(text or "")))
            converted = next(begun, None)
        return converted

    def _drop(self, fault: ErrorDetails) -> None:
        self._lose(f"was dropped: {fault['msg']}", fault["loc"])

    def _lose(self, what: str, inner: tuple[int | str, ...] = ()) -> None:
        self.losses.append(f"{'.'.join([*self._place, *map(str, inner)])} {what}")
        if len(self.losses) > _MOST_LOSSES:
            raise ValueError("the reply has too many faults")

    @contextmanager
    def _at(self, key: str) -> Iterator[None]:
        self._place.append(key)
        try:
            yield
        finally:
            self._place.pop()


_Entry = tuple[TypeAdapter[Any], int | None]
"""The type of a list's entries, and the most of them."""


@cache
def _entry_of(output: type[BaseModel], name: str) -> _Entry | None:
    """Return the entries of a field; None if it is no list."""
    field = output.model_fields[name]
    if get_origin(field.annotation) is not list:
        return None
    most = next((each.max_length for each in field.metadata if hasattr(each, "max_length")), None)
    return TypeAdapter(get_args(field.annotation)[0]), most


def as_text(value: object) -> str | None:
    """Return a value as text; None for objects with several values."""
    if isinstance(value, dict) and len(value) != 1:
        return None
    if isinstance(value, dict | list):
        texts = [as_text(each) for each in (value.values() if isinstance(value, dict) else value)]
        return None if None in texts else ", ".join(filter(None, texts))
    if isinstance(value, bool):
        return "yes" if value else "no"
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return "" if whole is None else str(whole)


def _as_list(value: object) -> list[Any]:
    """Return a single entry, or numbers in a text, as a list."""
    if not isinstance(value, str):
        return [] if value is None else [value]
    if not re.search(r"[^\W\d]", value):
        return [int(number) for number in _NUMBER.findall(value)]
    return [value]


def bare(text: str) -> str:
    """Return a label in lower case, without marks around it."""
    return re.sub(r"^\W+|\W+$", "", text).casefold()
