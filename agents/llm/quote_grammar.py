"""Quotes guided to be copies: the schema of a reply narrowed to words that stand in the sources of its prompt.

A small model finds the place and slips in copying from it. So a guided quote is the beginning of one of the clauses of
the source that it names, word for word: where it begins and ends is the model's choice, what it says is not. Headings
say nothing, and are not quoted.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from sleuth.agents.formatting.sources import in_prompt
from sleuth.agents.model import Message
from sleuth.tools.text import clauses, sentences, unwrap_lines

MOST_CHARS = 240
"""What a quote has room for (`Quote`)."""

_LEAST_CHARS = 12
"""A quote goes on at least so far, or to the end of its clause."""

_SOON = 60
"""Characters from the beginning of a clause to where its sentence may end."""

MOST_PATTERN = 400_000
"""Characters of all patterns together: they take the server a quarter of a second, and far more it refuses."""

_DEFINITION = "Quote"
# A word, with what joins its parts, and the marks behind it; of scripts without spaces some characters.
_PIECE = re.compile(r" *(?:[^\w ]{0,8}\w{1,24}(?:[-'’.,:/&]\w{1,24})*|[^\w ]{1,8})")
_QUOTATION = "\"'“”‘’ "
_INITIAL = re.compile(r"\b\w{1,2}\.$")
_WHITE_SPACE = re.compile(r"\s")
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


def narrowed(schema: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """The schema, its quotes guided by the sources in a prompt.

    As it is where it has no quotes, where the prompt has no sources, others than passages (`reference.listed`), or more
    than a server can take.
    """
    text = "\n".join(message["content"] for message in messages)
    if _DEFINITION not in schema.get("$defs", {}) or text.count("<source ") != len(sources := in_prompt(text)):
        return schema
    patterns = {number: pattern for number, source in sources if (pattern := _beginnings(source.text))}
    if not 0 < sum(map(len, patterns.values())) <= MOST_PATTERN:
        return schema
    copies = [_copy(number, pattern) for number, pattern in patterns.items()]
    return schema | {"$defs": schema["$defs"] | {_DEFINITION: {"anyOf": copies}}}


def _copy(number: int, pattern: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"source": {"const": number}, "quote": {"type": "string", "pattern": f"^(?:{pattern})$"}},
        "required": ["source", "quote"],
        "additionalProperties": False,
    }


def _beginnings(text: str) -> str:
    """A pattern of all that a quote may be, in the form a(?: b(?: c)?)? for each clause."""
    seen: set[str] = set()
    patterns: dict[str, None] = {}
    room = MOST_PATTERN
    for clause in (clause[:MOST_CHARS] for clause in _clauses(text)):
        if clause not in seen and (pattern := _beginning(clause)) not in patterns:
            patterns[pattern] = None
            room -= len(pattern)
        if room < 0:  # the schema stays as it is, whatever follows
            break
        seen.add(clause)
    return "|".join(patterns)


def _clauses(text: str) -> Iterator[str]:
    """All clauses, each to the end of its sentence; further where that comes soon, as at an abbreviation."""
    lines = unwrap_lines(text).splitlines()
    for line in [line for line in lines if not line.startswith("#")] or lines:
        said = [_WHITE_SPACE.sub(" ", sentence) for sentence in sentences(line)]
        for at, sentence in enumerate(said):
            for begin in clauses(sentence):
                rest = sentence[begin : begin + MOST_CHARS]
                for further in range(at + 1, len(said)):
                    if len(rest) >= _SOON and (len(rest) >= MOST_CHARS or not _INITIAL.search(rest[-4:])):
                        break
                    rest += f" {said[further][:MOST_CHARS]}"
                if rest.strip(_QUOTATION):
                    yield rest


def _beginning(clause: str) -> str:
    pieces = _PIECE.findall(clause)
    begun = [text.strip(_QUOTATION) for text in accumulate(pieces)]  # quotation marks at its ends are not looked for
    least = next((at for at, text in enumerate(begun, start=1) if len(text) >= _LEAST_CHARS), len(pieces))
    escaped = [_SPECIAL.sub(r"\\\g<0>", piece) for piece in pieces]
    more = escaped[least:]
    return "".join(escaped[:least]) + "".join(f"(?:{piece}" for piece in more) + ")?" * len(more)
