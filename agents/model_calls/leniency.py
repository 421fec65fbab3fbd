"""Values of nearly the right type in replies: converted where their meaning is plain, otherwise cut or dropped.

Pydantic walks the value: each `Output` calls `Leniency.as_object` with its value, and `read_field` with each field.
Dropped are a field with a default, or the entry of a list.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUseDefault

_MOST_LOSSES = 100
"""Losses from which a reply is refused."""

_NUMBER = re.compile(r"(?<!\d)(?:(?<!\w)-)?\d{1,9}(?!\d)")
_NUMBERED = re.compile(r"\W*(?:[^\W\d]+\W*)?(\d{1,9})\W*")
_YES_OR_NO = re.compile(r"\W*(?:(yes|true)|no|false)\b", re.IGNORECASE)

Read = Callable[[Any], Any]
"""Reads a value strictly, or raises ValidationError."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """The type of a field, or of a list's entries, with the most characters or entries."""

    type: Any
    most: int | None
    entry: TypeAdapter[Any] | None
    entry_kind: "_Kind | None"

    @classmethod
    def of(cls, field: FieldInfo) -> "_Kind":
        limits = [getattr(each, "max_length", None) for each in field.metadata]
        most = next((limit for limit in limits if limit is not None), None)
        if get_origin(field.annotation) is not list:
            return cls(field.annotation, most, None, None)
        (entry,) = get_args(field.annotation)
        return cls(list, most, TypeAdapter(entry), cls.of(FieldInfo.from_annotation(entry)))


@cache
def _kind_of(output: type[BaseModel], name: str) -> _Kind:
    return _Kind.of(output.model_fields[name])


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
        """Return the value of a field; its default is used if it cannot be read.

        Outside of lists, a text, list or boolean is needed even if it has a default.
        """
        kind = _kind_of(output, name)
        with self._at(name):
            try:
                return self._read(value, read, kind)
            except ValidationError as error:
                is_needed = kind.type in (str, bool, list) and not any(each.isdigit() for each in self._place)
                if is_needed or output.model_fields[name].is_required():
                    raise
                self._drop(error)
                self.dropped |= {name} if len(self._place) == 1 else set()
        raise PydanticUseDefault

    def _read(self, value: Any, read: Read, kind: _Kind) -> Any:  # noqa: ANN401 - JSON
        """Read a value as it is, otherwise converted and cut."""
        if not kind.entry:
            try:
                return read(value)
            except ValidationError:
                converted = _converted(value, kind.type)
                if converted is None:
                    raise
            return read(self._cut(converted, kind, "characters") if kind.type is str else converted)
        return read(self._entries(value if isinstance(value, list) else _as_list(value), kind))

    def _entries(self, value: list[Any], kind: _Kind) -> list[Any]:
        """Return the entries of a list that can be read."""
        adapter, entry_kind, entries = kind.entry, kind.entry_kind, list[Any]()
        assert adapter and entry_kind
        for at, each in enumerate(self._cut(value, kind, "entries")):
            with self._at(str(at)):
                try:
                    entries.append(
                        self._read(each, lambda given: adapter.validate_python(given, context=self), entry_kind)
                    )
                except ValidationError as error:
                    self._drop(error)
        return entries

    def _cut(self, value: Any, kind: _Kind, of: str) -> Any:  # noqa: ANN401 - a text or a list
        if kind.most is not None and len(value) > kind.most:
            self._lose(f"was cut from {len(value)} to {kind.most} {of}")
        return value[: kind.most]

    def _drop(self, error: ValidationError) -> None:
        fault = error.errors()[-1]
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


def _converted(value: object, kind: Any) -> Any:  # noqa: ANN401 - a type and a value of it
    """Return the value in a type; None if its meaning is not plain."""
    text = as_text(value)
    if kind is str or text is None:
        return text
    if kind is bool:
        match = _YES_OR_NO.match(text)
        return bool(match[1]) if match else None
    if get_origin(kind) is Literal:
        return next((each for each in get_args(kind) if re.match(rf"{re.escape(bare(each))}\b", bare(text))), None)
    numbers = _NUMBER.findall(text) if kind is int or int in get_args(kind) else []
    return int(numbers[0]) if len(numbers) == 1 else None


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
