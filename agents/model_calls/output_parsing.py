"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them.

Values of nearly the right type are converted where their meaning is plain, otherwise cut or dropped. Pydantic walks
the value: each `Output` calls `Leniency.as_object` with its value, and `read_field` with each field. Dropped are a
field with a default, or the entry of a list.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUseDefault

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
    """Return the output that a JSON value means, and what was cut or dropped.

    Raises:
        ValidationError: a part that is needed is missing or cannot be understood.
    """
    assert issubclass(output, BaseModel)
    leniency = Leniency()
    read = output.model_validate(_unwrapped(value, output), context=leniency)
    if value and not read.model_fields_set - leniency.dropped:
        raise ValueError("it has none of the fields asked for")
    return read, leniency.losses


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
        limits = [getattr(mark, "max_length", None) for mark in field.metadata]
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
                is_needed = kind.type in (str, bool, list) and not any(key.isdigit() for key in self._place)
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
        for at, entry in enumerate(self._cut(value, kind, "entries")):
            with self._at(str(at)):
                try:
                    entries.append(
                        self._read(entry, lambda item: adapter.validate_python(item, context=self), entry_kind)
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
        return next((label for label in get_args(kind) if re.match(rf"{re.escape(bare(label))}\b", bare(text))), None)
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
    """Return a single entry, or numbers in a text, as a list."""
    if not isinstance(value, str):
        return [] if value is None else [value]
    if not re.search(r"[^\W\d]", value):
        return [int(number) for number in _NUMBER.findall(value)]
    return [value]


def bare(text: str) -> str:
    """Return a label in lower case, without marks around it."""
    return re.sub(r"^\W+|\W+$", "", text).casefold()
