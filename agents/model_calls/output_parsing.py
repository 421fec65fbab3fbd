"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them."""

import asyncio
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sleuth.agents.model import Reply
from sleuth.agents.role import I, O, Role
from sleuth.tools.text import sanitize

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)

_OPENING = re.compile(r"[{\[]")
_STRING_OR_COMMA = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|,(?=\s*+[}\]])', re.DOTALL)

MAX_ATTEMPTS = 500
"""Opening brackets at which a JSON value is searched for: each attempt may read the whole text."""

MAX_DEPTH = 50
"""Levels of nesting; deeper values are not accepted."""

MAX_CHARS = 300_000
"""Characters from which a reply is refused: models write far less."""

_LONG = 20_000
"""Characters that are parsed in a few milliseconds."""


class Unparsable(Exception):
    """A reply that does not have the requested form; the message is shown to the model that repairs it."""


def parse(text: str, output: type[O], *, choices: tuple[str, ...] | None = None, cut_off: bool = False) -> O:
    """Return the typed output in a reply.

    Args:
        text: the raw reply.
        output: a pydantic model, or str for plain text.
        choices: the only texts allowed, compared without case, quotes and full stops.
        cut_off: the reply ended because it reached its length limit.

    Texts and lists that are longer than the output allows are cut.

    Raises:
        Unparsable: the reply does not have the requested form.
    """
    return _parse(text, output, choices=choices, cut_off=cut_off)[0]


def _parse(text: str, output: type[O], *, choices: tuple[str, ...] | None, cut_off: bool) -> tuple[O, list[str]]:
    """Return the typed output in a reply, and what was cut from it."""
    if len(text) > MAX_CHARS:
        raise Unparsable(f"it is longer than {MAX_CHARS:,} characters: be shorter")
    answer = without_thoughts(text).strip()
    if not answer:
        raise Unparsable("it is empty" + (" because it became too long while thinking" if cut_off else ""))
    if issubclass(output, str):
        return output(_choice(answer, choices) if choices else _plain(answer)), []
    return _structured(answer, output, cut_off=cut_off)


async def parse_reply(role: Role[I, O], reply: Reply) -> tuple[O, list[str]]:
    """Return the typed output in a role's reply, and what was cut from it because it was longer than allowed.

    The reply of a role that continues a text is taken verbatim. A long text is parsed in a thread, so as not to block
    other runs.

    Raises:
        Unparsable: the reply does not have the requested form.
    """
    if role.begun and issubclass(role.output, str):
        return role.output(reply["text"]), []
    read = partial(_parse, reply["text"], role.output, choices=role.choices, cut_off=reply["finish"] == "length")
    return read() if len(reply["text"]) <= _LONG else await asyncio.to_thread(read)


def without_thoughts(text: str) -> str:
    """Return the text without `<think>` blocks; a block that is not closed extends to the end."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text))


def _plain(answer: str) -> str:
    whole = _FENCED.fullmatch(answer)
    return whole.group(1).strip() if whole else answer


def _choice(answer: str, choices: tuple[str, ...]) -> str:
    wanted = {_bare(choice): choice for choice in choices}
    found = wanted.get(_bare(_plain(answer)))
    if found is None:
        raise Unparsable(f"it must be exactly one of {', '.join(choices)}")
    return found


def _bare(label: str) -> str:
    return label.strip().strip("\"'`*.!:").strip().casefold()


def _structured(answer: str, output: type[O], *, cut_off: bool) -> tuple[O, list[str]]:
    """Return the first JSON value that validates; otherwise raise Unparsable with the fault of the first one."""
    reason = "it ends before its JSON does: be shorter" if cut_off else "it holds no complete JSON value"
    problem: str | None = None
    for value in _values(answer):
        try:
            return _validated(value, output)
        except ValidationError as error:
            problem = problem or _explain(error)
    raise Unparsable(problem if problem and not cut_off else reason)


def _values(answer: str) -> Iterator[object]:
    """Yield complete JSON objects and arrays in their order; nested ones only where the outer one is broken.

    Trailing commas and line breaks in strings are accepted.
    """
    text = _STRING_OR_COMMA.sub(lambda found: "" if found.group() == "," else found.group(), answer)
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(MAX_ATTEMPTS):
        if (opening := _OPENING.search(text, at)) is None:
            return
        try:
            value, end = decoder.raw_decode(text, opening.start())
            yield _storable(value)
            at = end
        except (ValueError, RecursionError):
            at = opening.end()


def _storable(value: object, levels: int = MAX_DEPTH) -> object:
    """Return a JSON value with texts that can be stored; raise ValueError if it is too deep."""
    if levels < 0:
        raise ValueError("too deep")
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, dict):
        return {sanitize(key): _storable(item, levels - 1) for key, item in value.items()}
    return [_storable(item, levels - 1) for item in value] if isinstance(value, list) else value


def _validated(value: object, output: type[O]) -> tuple[O, list[str]]:
    assert issubclass(output, BaseModel)
    value, cuts = _lower_keys(value), list[str]()
    while True:
        try:
            return output.model_validate(value), cuts
        except ValidationError as error:
            found = [_cut(value, fault) for fault in error.errors() if fault["type"] in ("too_long", "string_too_long")]
            if not found or None in found:
                raise
            cuts += filter(None, found)


def _cut(value: Any, fault: ErrorDetails) -> str | None:  # noqa: ANN401 - JSON
    """Cut a text or list in a value to the length that it may have, and describe that; None if it is not in there."""
    *place, last = fault["loc"]
    most = fault["ctx"]["max_length"]
    try:
        for key in place:
            value = value[key]
        whole = value[last]
        value[last] = whole[:most]
    except (KeyError, IndexError, TypeError):
        return None
    if len(whole) <= most:  # a validator has changed the value before
        return None
    what = "characters" if isinstance(whole, str) else "entries"
    return f"{'.'.join(map(str, fault['loc']))} was cut from {len(whole)} to {most} {what}"


def _lower_keys(value: object) -> object:
    """Return a copy of the value with every key in lower case, as in all outputs."""
    if isinstance(value, dict):
        return {str(key).strip().lower(): _lower_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_lower_keys(item) for item in value]
    return value


def _explain(error: ValidationError) -> str:
    """Return the first faults with their places, short enough for a prompt."""
    faults = [f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}" for fault in error.errors()[:3]]
    return "; ".join(faults)
