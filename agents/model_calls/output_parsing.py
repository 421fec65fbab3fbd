"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them.

Values of nearly the right type are converted where their meaning is plain, and values that are too long are cut. Of
what is then invalid, an entry of a list or a field with a default is dropped.
"""

import json
import re
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from sleuth.agents.model import Reply, without_thoughts
from sleuth.agents.role import I, O, Role
from sleuth.tools.text.normalization import sanitize

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)

_OPENING = re.compile(r"[{\[]")
_STRING_OR_COMMA = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|,(?=\s*+[}\]])', re.DOTALL)

MAX_ATTEMPTS = 500
"""Opening brackets at which a JSON value is searched for: each attempt may read the whole text."""

MAX_DEPTH = 50
"""Levels of nesting; deeper values are not accepted."""

MAX_CHARS = 60_000
"""Characters from which a reply is refused: models write far less, and longer ones would delay other runs."""

_MOST_LOSSES = 100
"""Losses from which a reply is refused."""

_NUMBER = re.compile(r"(?<!\d)(?:(?<!\w)-)?\d{1,9}(?!\d)")
_NUMBERED = re.compile(r"\W*(?:[^\W\d]+\W*)?(\d{1,9})\W*")
_YES_OR_NO = re.compile(r"\W*(?:(yes|true)|no|false)\b", re.IGNORECASE)


class Unparsable(Exception):
    """A reply that does not have the requested form; the message is shown to the model that repairs it."""


def parse(text: str, output: type[O], *, choices: tuple[str, ...] | None = None, cut_off: bool = False) -> O:
    """Return the typed output in a reply.

    Args:
        text: the raw reply.
        output: a pydantic model, or str for plain text.
        choices: the only texts allowed, compared without case and marks around them.
        cut_off: the reply ended because it reached its length limit.

    Raises:
        Unparsable: the reply does not have the requested form.
    """
    return _parse(text, output, choices=choices, cut_off=cut_off)[0]


def _parse(text: str, output: type[O], *, choices: tuple[str, ...] | None, cut_off: bool) -> tuple[O, list[str]]:
    """Return the typed output in a reply, and what was cut from it because it was longer than the output allows."""
    if len(text) > MAX_CHARS:
        raise Unparsable(f"it is longer than {MAX_CHARS:,} characters: be shorter")
    answer = without_thoughts(text).strip()
    if not answer:
        raise Unparsable("it is empty" + (" because it became too long while thinking" if cut_off else ""))
    if not issubclass(output, str):
        return _structured(answer, output, cut_off=cut_off)
    if whole := _FENCED.fullmatch(answer):
        answer = whole[1].strip()
    if choices:
        bare_choices = {bare(choice): choice for choice in choices}
        if (bare_answer := bare(answer)) not in bare_choices:
            raise Unparsable(f"it must be exactly one of {', '.join(choices)}")
        answer = bare_choices[bare_answer]
    return output(answer), []


def parse_reply(role: Role[I, O], reply: Reply) -> tuple[O, list[str]]:
    """Return the typed output in a role's reply, and what was cut from it.

    The reply of a role that continues a text is taken verbatim.

    Raises:
        Unparsable: the reply does not have the requested form.
    """
    if role.begun and issubclass(role.output, str):
        return role.output(reply["text"]), []
    return _parse(reply["text"], role.output, choices=role.choices, cut_off=reply["finish"] == "length")


def _structured(text: str, output: type[O], *, cut_off: bool) -> tuple[O, list[str]]:
    """Return the output of the last JSON value that validates; otherwise raise Unparsable with the first one's fault.

    Objects come before lists. A value right after a valid one is ignored: the model did not stop.
    """
    reason = "it ends before its JSON does: be shorter" if cut_off else "it holds no complete JSON value"
    # Trailing commas and line breaks in strings are accepted.
    text = _STRING_OR_COMMA.sub(lambda match: "" if match.group() == "," else match.group(), text)
    problem, best, best_rank, is_valid = "", None, (False, False), False
    for value, has_words_before in _decoded(text):
        is_repeated = is_valid and not has_words_before
        try:
            read, fault = coerce(value, output), ""
        except ValidationError as error:
            first = error.errors()[:3]  # short enough for a prompt
            fault = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in first)
        except ValueError as error:
            fault = str(error)
        is_valid, problem = not fault, problem or fault
        rank = (bool(value), isinstance(value, dict))
        if is_valid and not is_repeated and rank >= best_rank:
            best, best_rank = read, rank
    if best is None:
        raise Unparsable(problem if problem and not cut_off else reason)
    return best


def _decoded(text: str) -> Iterator[tuple[object, bool]]:
    """Yield complete JSON objects and arrays, each with whether words precede it; nested ones only of broken ones."""
    decoder, begin, end = json.JSONDecoder(strict=False), 0, 0
    for _ in range(MAX_ATTEMPTS):
        if (opening := _OPENING.search(text, begin)) is None:
            return
        try:
            value, begin = decoder.raw_decode(text, opening.start())
            yield _storable(value), re.search(r"\w", text[end : opening.start()]) is not None
            end = begin
        except (ValueError, RecursionError):
            begin = opening.end()


def _storable(value: object, levels: int = MAX_DEPTH) -> object:
    """Return a JSON value with texts that can be stored and keys in lower case; raise ValueError if it is too deep."""
    if levels < 0:
        raise ValueError("too deep")
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, dict):
        return {sanitize(key).strip().lower(): _storable(item, levels - 1) for key, item in value.items()}
    return [_storable(item, levels - 1) for item in value] if isinstance(value, list) else value


def coerce(value: Any, output: type[O]) -> tuple[O, list[str]]:  # noqa: ANN401 - JSON
    """Return the output that a JSON value means, and what was cut or dropped, a line each, sorted.

    Raises:
        ValidationError: a part that is needed is missing or cannot be understood.
        ValueError: no field was read, or too much was lost.
    """
    assert issubclass(output, BaseModel)
    losses: list[str] = []
    converted = _converted(_unwrapped(value, output), FieldInfo.from_annotation(output), (), losses)
    while len(losses) <= _MOST_LOSSES:
        try:
            read = output.model_validate(converted)
        except ValidationError as error:
            dropped = {_droppable(fault["loc"], output): fault for fault in error.errors()}
            dropped.pop((), None)
            if not dropped:
                raise
            losses += [f"{_path(fault['loc'])} was dropped: {fault['msg']}" for fault in dropped.values()]
            for *outer, key in sorted(dropped, reverse=True):
                del reduce(getitem, outer, converted)[key]
        else:
            if value and not read.model_fields_set:
                raise ValueError("it has none of the fields asked for")
            return read, sorted(losses)
    raise ValueError("the reply has too many faults")


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


Place = tuple[int | str, ...]
"""The keys and positions that lead to a value in a reply."""


def _path(place: Place) -> str:
    return ".".join(map(str, place))


def _droppable(place: Place, output: type[BaseModel]) -> Place:
    """Return the place of the innermost list entry or field with a default around a value; empty if it has none.

    Texts, lists and booleans outside of lists are needed, even if they have a default.
    """
    kind: Any = output
    found: Place = ()
    for depth, key in enumerate(place, start=1):
        if isinstance(key, int):
            (kind,) = get_args(kind)
            found = place[:depth]
        else:
            field = kind.model_fields[key]
            kind = field.annotation
            is_needed = kind in (str, bool) or get_origin(kind) is list
            if not field.is_required() and (found or not is_needed):
                found = place[:depth]
    return found


def _converted(value: Any, field: FieldInfo, place: Place, losses: list[str]) -> Any:  # noqa: ANN401 - JSON
    """Return a value in the type of a field or list entry, cut to its length; as it is if its meaning is not plain."""
    kind: Any = field.annotation
    other_forms: list[Any] = [mark.func for mark in field.metadata if isinstance(mark, BeforeValidator)]
    for read in other_forms:
        value = read(value)
    if get_origin(kind) is list:
        entry = FieldInfo.from_annotation(get_args(kind)[0])
        entries = enumerate(_cut(_as_list(value), field, place, losses))
        return [_converted(item, entry, (*place, at), losses) for at, item in entries]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        value = _as_object(value, kind) if place else value
        if not isinstance(value, dict):
            return value
        fields = [(name, inner) for name, inner in kind.model_fields.items() if name in value]
        return {name: _converted(value[name], inner, (*place, name), losses) for name, inner in fields}
    converted = _as_scalar(value, kind)
    if converted is None:
        return value
    return _cut(converted, field, place, losses) if kind is str else converted


def _cut(value: Any, field: FieldInfo, place: Place, losses: list[str]) -> Any:  # noqa: ANN401 - a text or a list
    """Return the beginning of a value that is longer than its field allows."""
    most = next((mark.max_length for mark in field.metadata if getattr(mark, "max_length", None)), len(value))
    if len(value) > most:
        unit = "entries" if isinstance(value, list) else "characters"
        losses.append(f"{_path(place)} was cut from {len(value)} to {most} {unit}")
    return value[:most]


def _as_object(value: Any, output: type[BaseModel]) -> Any:  # noqa: ANN401 - JSON
    """Return the object in a list of one, or the object that a bare number or text means."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, bool | dict | list):
        return value
    fields = sorted(output.model_fields.items(), key=lambda field: not field[1].is_required())
    named = {kind: next((name for name, field in fields if field.annotation is kind), None) for kind in (int, str)}
    number = _NUMBERED.fullmatch(as_text(value) or "")
    if number and named[int]:
        return {named[int]: int(number[1])}
    return {named[str]: as_text(value)} if named[str] else value


def _as_scalar(value: object, kind: Any) -> Any:  # noqa: ANN401 - a type and a value of it
    """Return the text, number, boolean or label that a value means; None if its meaning is not plain."""
    text = as_text(value)
    if kind is str or text is None:
        return text
    if kind is bool:
        match = _YES_OR_NO.match(text)
        return bool(match[1]) if match else None
    if get_origin(kind) is Literal:
        labels = get_args(kind)
        named = (label for label in labels if bare(label))
        begun = (label for label in named if re.match(rf"{re.escape(bare(label))}\b", bare(text)))
        return text if text in labels else next(begun, None)
    numbers = _NUMBER.findall(text) if kind is int or int in get_args(kind) else []
    return int(numbers[0]) if len(numbers) == 1 else None


def as_text(value: object) -> str | None:
    """Return a value as text; None for objects with several values."""
    if isinstance(value, dict) and len(value) != 1:
        return None
    if isinstance(value, dict | list):
        texts = [as_text(item) for item in (value.values() if isinstance(value, dict) else value)]
        return None if None in texts else ", ".join(filter(None, texts))
    if isinstance(value, bool):
        return "yes" if value else "no"
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return "" if whole is None else str(whole)


def _as_list(value: object) -> list[Any]:
    """Return a list, a single entry or numbers in a text as a list."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return [] if value is None else [value]
    if not re.search(r"[^\W\d]", value):
        return [int(number) for number in _NUMBER.findall(value)]
    return [value]


def bare(text: str) -> str:
    """Return a label in lower case, without marks around it."""
    return re.sub(r"^\W+|\W+$", "", text).casefold()
