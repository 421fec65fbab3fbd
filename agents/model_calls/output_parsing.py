"""Parsing of replies into typed outputs, tolerant of text, fences and thoughts around them."""

import asyncio
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import cast

from pydantic import BaseModel, ValidationError

from sleuth.agents.model import Reply
from sleuth.agents.model_calls.coercion import bare, coerce
from sleuth.agents.role import I, O, Role
from sleuth.agents.thoughts import THOUGHT_TAG, without_thoughts
from sleuth.tools.text import sanitize

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
        choices: the only texts allowed, compared without case and marks around them.
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
    return _structured(text, output, cut_off=cut_off)


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


def _plain(answer: str) -> str:
    whole = _FENCED.fullmatch(answer)
    return whole.group(1).strip() if whole else answer


def _choice(answer: str, choices: tuple[str, ...]) -> str:
    wanted = {bare(each): each for each in choices}
    choice = wanted.get(bare(_plain(answer)))
    if choice is None:
        raise Unparsable(f"it must be exactly one of {', '.join(choices)}")
    return choice


def _structured(text: str, output: type[O], *, cut_off: bool) -> tuple[O, list[str]]:
    """Return the output of the last JSON value that validates; otherwise raise Unparsable with the first one's fault.

    Objects come before lists. A value right after a valid one is ignored: the model did not stop.
    """
    reason = "it ends before its JSON does: be shorter" if cut_off else "it holds no complete JSON value"
    if sum(map(text.count, "{[")) > MAX_ATTEMPTS:
        text = without_thoughts(text)
    # Trailing commas and line breaks in strings are accepted.
    text = _STRING_OR_COMMA.sub(lambda match: "" if match.group() == "," else match.group(), text)
    problem, best, best_rank, is_valid = "", None, (False, False), False
    for value, has_words_before in _values(text):
        is_repeated = is_valid and not has_words_before
        try:
            read, fault = coerce(value, output), ""
        except ValidationError as error:
            fault = _explain(error)
        if not fault and value and not cast(BaseModel, read[0]).model_fields_set:
            fault = "it has none of the fields asked for"
        is_valid, problem = not fault, problem or fault
        rank = (bool(value), isinstance(value, dict))
        if is_valid and not is_repeated and rank >= best_rank:
            best, best_rank = read, rank
    if best is None:
        raise Unparsable(problem if problem and not cut_off else reason)
    return best


def _values(text: str) -> list[tuple[object, bool]]:
    """Return the JSON objects and arrays that are not in thoughts, each with whether words precede it.

    A tag inside a JSON string is a part of the string.
    """
    end, is_thought = 0, False
    values: list[tuple[object, bool]] = []
    for start, stop, value in [*_decoded(text), (len(text), len(text), None)]:
        between = text[end:start]
        for tag in THOUGHT_TAG.finditer(between):
            is_thought = tag["opening"] is not None
            if not is_thought:
                values.clear()
        if value is not None and not is_thought:
            values.append((value, re.search(r"\w", between) is not None))
        end = stop
    return values


def _decoded(text: str) -> Iterator[tuple[int, int, object]]:
    """Yield complete JSON objects and arrays with their places; nested ones only where the outer one is broken."""
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(MAX_ATTEMPTS):
        if (opening := _OPENING.search(text, at)) is None:
            return
        try:
            value, end = decoder.raw_decode(text, opening.start())
            yield opening.start(), end, _storable(value)
            at = end
        except (ValueError, RecursionError):
            at = opening.end()


def _storable(value: object, levels: int = MAX_DEPTH) -> object:
    """Return a JSON value with texts that can be stored and keys in lower case; raise ValueError if it is too deep."""
    if levels < 0:
        raise ValueError("too deep")
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, dict):
        return {sanitize(key).strip().lower(): _storable(item, levels - 1) for key, item in value.items()}
    return [_storable(item, levels - 1) for item in value] if isinstance(value, list) else value


def _explain(error: ValidationError) -> str:
    """Return the first faults with their places, short enough for a prompt."""
    faults = [f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}" for fault in error.errors()[:3]]
    return "; ".join(faults)
