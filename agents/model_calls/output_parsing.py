"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them."""

import json
import re
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sleuth.agents.model import Reply
from sleuth.agents.role import I, O, Role
from sleuth.agents.thoughts import without_thoughts
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

_ROUNDS = 100
"""The most faults that are repaired."""

_MOST_FAULTS = 1000
"""Faults above which a reply is refused: listing them in each round takes seconds."""

_NUMBER = re.compile(r"(?<!\d)(?:(?<!\w)-)?\d{1,9}(?!\d)")
_NUMBERED = re.compile(r"\W*(?:[^\W\d]+\W*)?(\d{1,9})\W*")
_YES_OR_NO = re.compile(r"\W*(?:(yes|true)|no|false)\b", re.IGNORECASE)
_NEEDED = ("string_type", "string_too_short", "bool_type", "bool_parsing", "too_short")
"""Faults for which a whole reply is refused, if they are outside its lists."""


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
        wanted = {bare(each): each for each in choices}
        if (bare_answer := bare(answer)) not in wanted:
            raise Unparsable(f"it must be exactly one of {', '.join(choices)}")
        answer = wanted[bare_answer]
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
        if not fault and value and not cast(BaseModel, read[0]).model_fields_set:
            fault = "it has none of the fields asked for"
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


# Values of nearly the right type: converted where their meaning is plain, otherwise cut or dropped. Pydantic's faults
# name the place and the kind of each. Dropped are a field with a default, or the entry of a list.


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
            if error.error_count() > _MOST_FAULTS:
                raise
            try:
                losses += _mend(value, output, error.errors()[-1])
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


def _mend(value: Any, output: type[BaseModel], fault: ErrorDetails) -> list[str]:  # noqa: ANN401 - JSON
    """Convert, cut or drop the value at the place of a fault; return what is lost. Raises LookupError if it cannot."""
    place, kind = fault["loc"], fault["type"]
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
    return [f"{name} was dropped: {fault['msg']}"]


def _converted(value: object, output: type[BaseModel], fault: ErrorDetails) -> object:
    """Return the value in the type that a fault asks for; None if its meaning is not plain."""
    kind, text = fault["type"], _as_text(value) or ""
    if kind == "string_type":
        return _as_text(value)
    if kind == "list_type":
        return _as_list(value)
    if kind.startswith("int_"):
        numbers = _NUMBER.findall(text)
        return int(numbers[0]) if len(numbers) == 1 else None
    if kind.startswith("bool_"):
        match = _YES_OR_NO.match(text)
        return bool(match[1]) if match else None
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
        return next((each for each in allowed if re.match(rf"{re.escape(bare(each))}\b", bare(text))), None)
    return _as_object(value, _type_at(output, fault["loc"])) if kind == "model_type" else None


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
