"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from sleuth.agents.model import Reply
from sleuth.agents.model_calls.leniency import Leniency, bare
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
