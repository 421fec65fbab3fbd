"""Grammar of verbatim quotes: a reply's schema, restricted to quotes that the sources of its prompt contain.

Small models find the right place but make mistakes when they copy it. A guided quote is the beginning of a clause of
the source that it names, word for word; the model chooses where it begins and ends. Headings are not quoted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from sleuth.agents.formatting import parse_sources
from sleuth.agents.model import Message
from sleuth.tools.text.normalization import unwrap_lines
from sleuth.tools.text.tokenization import sentence_spans

MOST_CHARS = 240
"""The longest quote (`Quote`)."""

_LEAST_CHARS = 12
"""The shortest quote, unless its clause is shorter."""

_SOON = 60
"""Characters from the beginning of a clause from which its sentence may end."""

MOST_PATTERN = 50_000
"""Characters of all patterns together; servers compile them in about 50 milliseconds."""

MOST_ENDS = 32
"""Places where a quote may end, for each beginning; they nest, and servers refuse more than about a hundred levels."""

_DEFINITION = "Quote"
# A word with its joining characters and trailing marks; a few characters of scripts without spaces.
_PIECE = re.compile(r"(?<! ) *(?:[^\w ]{0,8}\w{1,24}(?:[-'’.,:/&]\w{1,24})*|[^\w ]{1,8})")
_QUOTATION = "\"'“”‘’ "
_INITIAL = re.compile(r"\b\w{1,2}\.$")
_CLAUSE = re.compile(r"[,;:(|–—] ?| (?=(?:and|but|who|which|that|where|when|after|before|while|as|is|was|were) )")
_WHITE_SPACE = re.compile(r"\s")
_ESCAPED = {ord(mark): f"\\{mark}" for mark in r"\^$.|?*+()[]{}"}


def constrain_quotes(schema: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """Return the schema with its quotes restricted to the sources in a prompt.

    It is unchanged if it has no quotes, or if the prompt has no sources, other sources than passages, or too many.
    """
    text = "\n".join(message["content"] for message in messages)
    if _DEFINITION not in schema.get("$defs", {}) or text.count("<source ") != len(sources := parse_sources(text)):
        return schema
    for begins in (clauses, lambda _: [0]):  # a text may be too long for all of its clauses
        patterns = {number: pattern for number, source in sources if (pattern := _beginnings(source.text, begins))}
        if 0 < sum(map(len, patterns.values())) <= MOST_PATTERN:
            copies = [_copy(number, pattern) for number, pattern in patterns.items()]
            return schema | {"$defs": schema["$defs"] | {_DEFINITION: {"anyOf": copies}}}
    return schema


def _copy(number: int, pattern: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"source": {"const": number}, "quote": {"type": "string", "pattern": f"^(?:{pattern})$"}},
        "required": ["source", "quote"],
        "additionalProperties": False,
    }


def _beginnings(text: str, begins: Callable[[str], Iterable[int]]) -> str:
    """Return a pattern of all possible quotes of a text, in the form a(?: b(?: c)?)? for each part of a sentence."""
    whole: dict[str, list[str]] = {}
    patterns: list[str] = []
    room = MOST_PATTERN
    for clause in (clause[:MOST_CHARS] for clause in _clauses(text, begins)):
        alike = whole.setdefault(clause[:_LEAST_CHARS], [])
        if not any(other.startswith(clause) for other in alike):
            alike.append(clause)
            patterns.append(_beginning(clause))
            room -= len(patterns[-1])
        if room < 0:  # too long: this pattern will not be used
            break
    return "|".join(dict.fromkeys(patterns))


def _clauses(text: str, begins: Callable[[str], Iterable[int]]) -> Iterator[str]:
    """Yield all clauses, each to the end of its sentence, or further if that is near, as after an abbreviation."""
    lines = unwrap_lines(text).splitlines()
    for line in [line for line in lines if not line.startswith("#")] or lines:
        spans = sentence_spans(line)
        parts = [_WHITE_SPACE.sub(" ", line[start:end]) for start, end in spans]
        gaps = [" " if line[start - 1 : start].isspace() else "" for start, _ in spans]  # some scripts have none
        for at, sentence in enumerate(parts):
            for begin in begins(sentence):
                clause = sentence[begin : begin + MOST_CHARS]
                for further in range(at + 1, len(parts)):
                    if len(clause) >= _SOON and (len(clause) >= MOST_CHARS or not _INITIAL.search(clause[-4:])):
                        break
                    clause += gaps[further] + parts[further][:MOST_CHARS]
                if clause.strip(_QUOTATION):
                    yield clause


def _beginning(clause: str) -> str:
    pieces = _PIECE.findall(clause)
    begun = (text.strip(_QUOTATION) for text in accumulate(pieces))  # without quotation marks at the ends
    least = next((at for at, text in enumerate(begun, start=1) if len(text) >= _LEAST_CHARS), len(pieces))
    escaped = [piece.translate(_ESCAPED) for piece in pieces]
    step = -(-(len(pieces) - least) // MOST_ENDS) or 1
    more = ["".join(escaped[at : at + step]) for at in range(least, len(pieces), step)]
    return "".join(escaped[:least]) + "".join(f"(?:{piece}" for piece in more) + ")?" * len(more)


def clauses(sentence: str) -> list[int]:
    """Return the starts of a sentence's clauses, or of the cells of a table's line, in characters; 0 is the first."""
    return [0, *(match.end() for match in _CLAUSE.finditer(sentence) if match.end() < len(sentence))]
