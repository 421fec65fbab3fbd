"""Values of nearly the right type in a reply: converted where their meaning is plain, otherwise cut or dropped.

Pydantic's faults name the place and the kind of each. Dropped are a field with a default, or the entry of a list.
"""

import re
from functools import reduce
from operator import getitem
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sleuth.agents.role import O

_ROUNDS = 8
"""Each round repairs one level of nesting."""

_NUMBER = re.compile(r"(?<!\d)(?:(?<!\w)-)?\d{1,9}(?!\d)")
_NUMBERED = re.compile(r"\W*(?:[^\W\d]+\W*)?(\d{1,9})\W*")
_YES_OR_NO = re.compile(r"\W*(?:(yes|true)|no|false)\b", re.IGNORECASE)
_NEEDED = ("string_type", "string_too_short", "bool_type", "bool_parsing", "too_short")
"""Faults for which a whole reply is refused, if they are outside its lists."""


def coerce(value: Any, output: type[O]) -> tuple[O, list[str]]:  # noqa: ANN401 - JSON
    """Return the output that a JSON value means, and what was cut or dropped; the value itself is changed.

    Raises:
        ValidationError: a part that is needed is missing or cannot be understood.
    """
    assert issubclass(output, BaseModel)
    value, losses = _unwrapped(value, output), list[str]()
    for _ in range(_ROUNDS):
        try:
            return output.model_validate(value), losses
        except ValidationError as error:
            dropped: set[tuple[int | str, ...]] = set()
            for fault in reversed(error.errors()):
                try:
                    losses += _mend(value, output, fault, dropped)
                except (LookupError, TypeError):  # a validator has changed the value before, or nothing can be dropped
                    raise error from None
    return output.model_validate(value), losses


def _unwrapped(value: Any, output: type[BaseModel]) -> Any:  # noqa: ANN401 - JSON
    """Return the object in a list or object around it; a bare list is the only field of an output that has no other."""
    fields = output.model_fields
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & fields.keys():
        inner = next(iter(value.values()))
        return _unwrapped(inner, output) if isinstance(inner, dict | list) else value
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], dict) and value[0].keys() & fields.keys():
        return value[0]
    return {next(iter(fields)): value} if len(fields) == 1 else value


def _mend(value: Any, output: type[BaseModel], fault: ErrorDetails, dropped: set[tuple[int | str, ...]]) -> list[str]:  # noqa: ANN401 - JSON
    """Convert, cut or drop the value at the place of a fault; return what is lost. Raises LookupError if it cannot."""
    place, kind = fault["loc"], fault["type"]
    if any(place[: end + 1] in dropped for end in range(len(place))):
        return []
    parent = reduce(getitem, place[:-1], value)
    name = ".".join(map(str, place))
    if kind in ("too_long", "string_too_long"):
        whole, most = parent[place[-1]], fault["ctx"]["max_length"]
        if len(whole) <= most:
            raise LookupError(name)
        parent[place[-1]] = whole[:most]
        what = "characters" if isinstance(whole, str) else "entries"
        return [f"{name} was cut from {len(whole)} to {most} {what}"]
    converted = None if kind == "missing" else _converted(parent[place[-1]], output, fault)
    if converted is not None:
        parent[place[-1]] = converted
        return []
    numbers = [at for at, key in enumerate(place) if isinstance(key, int)]
    if kind != "missing" and isinstance(parent, dict) and (numbers or kind not in _NEEDED):
        del parent[place[-1]]
    else:
        place = place[: numbers[-1] + 1]
        del reduce(getitem, place[:-1], value)[place[-1]]
        dropped.add(place)
    return [f"{name} was dropped: {fault['msg']}"]


def _converted(value: object, output: type[BaseModel], fault: ErrorDetails) -> object:
    """Return the value in the type that a fault asks for; None if its meaning is not plain."""
    kind, text = fault["type"], _as_text(value) or ""
    new: object = None
    if kind == "string_type":
        new = _as_text(value)
    elif kind == "list_type":
        new = _as_list(value)
    elif kind.startswith("int_"):
        numbers = _NUMBER.findall(text)
        new = int(numbers[0]) if len(numbers) == 1 else None
    elif kind.startswith("bool_"):
        match = _YES_OR_NO.match(text)
        new = match and bool(match[1])
    elif kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
        new = next((each for each in allowed if re.match(rf"{re.escape(bare(each))}\b", bare(text))), None)
    elif kind == "model_type":
        new = _as_object(value, _type_at(output, fault["loc"]))
    return new


def _type_at(output: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the type at a place in an output."""
    kind: Any = output
    for key in place:
        kind = kind.model_fields[key].annotation if isinstance(key, str) else get_args(kind)[0]
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return cast(type[BaseModel], kind)


def _as_object(value: object, output: type[BaseModel]) -> object:
    """Return an object for a bare number or text, which is its first field of that type, preferably a required one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, bool | dict | list):
        return value if isinstance(value, dict) else None
    fields = sorted(output.model_fields.items(), key=lambda field: not field[1].is_required())
    named = {kind: next((name for name, field in fields if field.annotation is kind), None) for kind in (int, str)}
    text = _as_text(value)
    number = _NUMBERED.fullmatch(text or "")
    if number and named[int]:
        return {named[int]: int(number[1])}
    return {named[str]: text} if named[str] else None


def _as_text(value: object) -> str | None:
    """Return a value as text; None for objects with several values."""
    if isinstance(value, dict) and len(value) != 1:
        return None
    if isinstance(value, dict | list):
        texts = [_as_text(each) for each in (value.values() if isinstance(value, dict) else value)]
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
