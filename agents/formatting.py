"""Passages, references, steps, conversations and facts as they are written into prompts.

Text from documents and people is data: it is fenced, and it can neither close its fence nor open another.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from sleuth.agents.role import Output
from sleuth.tools.text.normalization import single_line
from sleuth.tools.types import Triple

# Sources

_FENCE = re.compile(r"<(?=\s*+(?:/\s*+)?source\b)", re.IGNORECASE)
# No line of a passage begins with a fence: see `escape_fences`.
_NUMBERED = re.compile(
    r"^<source (\d+)>\n(.*)\n((?:(?!</?source ).*+\n)*?(?!</?source ).*+)\n</source \d+>$", re.MULTILINE
)
# Of ChatML, Llama, Mistral, Gemma, Phi, DeepSeek, Qwen and GLM; also those of thoughts and of tool calls.
_CHAT_MARKER = re.compile(
    r"<(?=[|｜]|</?SYS>>|/?(?:s|bos|eos|pad|unk|prompt_embeds|unused\d+)>|/?(?:start|end)_of_\w+>"
    r"|/?(?:think|thinking|thought|reasoning)>|/?(?:tool_calls?|tool_response|function(?:_calls?)?)[=>])"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT|THINK|ARGS|CALL_ID|gMASK)\])",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One passage to read: its title and its text."""

    title: str
    text: str


def escape_fences(text: str) -> str:
    """Return the text, unable to close the fence around it or to open another."""
    return _FENCE.sub("‹", text)


def escape_chat_markers(text: str) -> str:
    """Return the text without the markers of chat templates and embeddings; lone surrogates become "?"."""
    return _CHAT_MARKER.sub(lambda mark: f"{mark.group()} ", text).encode("utf-8", "replace").decode("utf-8")


def escape_line(text: str) -> str:
    """Return a text as one line that opens and closes no fence."""
    return escape_fences(single_line(text))


def format_sources(sources: Sequence[Source], *, first: int = 1) -> str:
    """Return all sources in their order, each between its own numbered fences."""
    return "\n".join(_fenced(f"{at}", at, source) for at, source in enumerate(sources, start=first))


def _fenced(mark: str, number: int, source: Source) -> str:
    text = escape_fences(source.text.strip())
    return f"<source {mark}>\n{escape_line(source.title)}\n{text}\n</source {number}>"


def parse_sources(text: str) -> list[tuple[int, Source]]:
    """Return the sources in a prompt with their numbers, as `format_sources` wrote them."""
    return [(int(at), Source(title=title, text=body)) for at, title, body in _NUMBERED.findall(text)]


# References of the hybrid system (CRAG, section 4.6)

ReferenceKind = Literal["text", "table", "expression", "graph", "model", "note"]

LABELS: dict[ReferenceKind, str] = {
    "text": "text",
    "table": "table",
    "expression": "calculation",
    "graph": "knowledge graph",
    "model": "recalled by a model, may be made up",
    "note": "found out before",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledSource(Source):
    """A reference with its kind."""

    kind: ReferenceKind


def format_references(references: Sequence[Source]) -> str:
    """Return all references in their order, or a line that there are none.

    The fence of a reference that is not a passage or table names its kind, which no title can forge.
    """
    blocks: list[str] = []
    for at, reference in enumerate(references, start=1):
        kind = reference.kind if isinstance(reference, LabeledSource) else "text"
        blocks.append(_fenced(f"{at}" if kind in ("text", "table") else f"{at} ({LABELS[kind]})", at, reference))
    return "\n".join(blocks) or "(no sources)"


# Quotes, the citations in replies


UNNAMED = 999
"""The source of a quote that names none."""


MAX_QUOTE = 240
"""Characters of a quote."""


class Quote(Output):
    """Words of a numbered source; `source` counts from 1. The caller checks both."""

    source: int = Field(default=UNNAMED, ge=1, le=999)
    quote: str = Field(default="", max_length=MAX_QUOTE)


MAX_CITATIONS = 3

Quotes = Annotated[list[Quote], Field(max_length=MAX_CITATIONS)]
"""Few quotes: guided decoding must come to an end, and a short answer needs no more."""

Evidence = Annotated[list[Quote], Field(max_length=MAX_CITATIONS, json_schema_extra={"minItems": 1})]
"""At least one quote where the reply is guided; a reply without any is accepted."""

# Steps answered so far


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One sub-question and its answer."""

    question: str
    answer: str


def format_steps(steps: Sequence[Step]) -> str:
    """Return the steps numbered from 1, each on two lines, or a line that there are none."""
    lines = (
        f"{at}. Question: {escape_line(step.question)}\n   Answer: {escape_line(step.answer)}"
        for at, step in enumerate(steps, start=1)
    )
    return "\n".join(lines) or "(nothing yet)"


def format_list(texts: Sequence[str]) -> str:
    """Return texts numbered from 1, a line each, or a line that there are none."""
    return "\n".join(f"{at}. {escape_line(text)}" for at, text in enumerate(texts, start=1)) or "(nothing yet)"


# Conversations

MAX_TURNS = 8
"""Turns of a conversation that are shown; earlier ones do not help to understand the next message."""

MAX_TURN_CHARS = 600
"""Characters shown of each turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message of a conversation."""

    speaker: Literal["user", "assistant"]
    text: str


def format_turns(turns: Sequence[Turn]) -> str:
    """Return a line for each of the latest turns, oldest first, or a line that there are none."""
    lines: list[str] = []
    for turn in turns[-MAX_TURNS:]:
        text = escape_line(turn.text)
        excerpt = text if len(text) <= MAX_TURN_CHARS else f"{text[:MAX_TURN_CHARS].rstrip()} …"
        lines.append(f"{turn.speaker.title()}: {excerpt}")
    return "\n".join(lines) or "(nothing yet)"


# Sub-queries with the facts found for each (RAS, sections 3.1 and 3.3)

FactNumbers = Annotated[
    list[Annotated[int, Field(ge=1, le=999)]], Field(max_length=40, json_schema_extra={"maxItems": 6})
]
"""The numbers of the facts that something follows from; few, as guided decoding must come to an end."""

_BLOCK = re.compile(
    r"^<source (?P<at>\d+)>\n(?P<facts>(?:(?!</?source ).*+\n)*?(?!</?source ).*+)\n</source (?P=at)>$", re.MULTILINE
)
_FACT = re.compile(r"^\[\d+\] S> (.*) \| P> (.*) \| O> (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SubQuery:
    """A search query, and its answer where one was found."""

    text: str
    finding: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts(Source):
    """Numbered facts from one passage, a line each; `query` counts from 1: the sub-query that found them.

    They are a source, so the last ones are dropped where the context is small: put the best first.
    """

    query: int
    title: str = ""


def format_fact(number: int, triple: Triple) -> str:
    """Return a triple as one numbered line."""
    subject, predicate, object = triple
    return f"[{number}] S> {subject} | P> {predicate} | O> {object}"


def format_facts(queries: Sequence[SubQuery], facts: Sequence[Facts]) -> str:
    """Return each sub-query with its finding and its fenced facts, or a line that there are none."""
    lines: list[str] = []
    for at, query in enumerate(queries, start=1):
        lines.append(f"[SUBQ] {escape_line(query.text)}")
        lines += [f"Finding: {escape_line(query.finding)}"] if query.finding else []
        texts = [escape_fences(fact.text) for fact in facts if fact.query == at]
        lines += [f"<source {at}>", *(texts or ["(nothing new)"]), f"</source {at}>"]
    return "\n".join(lines) or "(nothing yet)"


def parse_facts(text: str) -> list[list[Triple]]:
    """Return the triples in a prompt by sub-query, as `format_facts` wrote them; empty sub-queries are left out."""
    blocks = (_FACT.findall(block["facts"]) for block in _BLOCK.finditer(text))
    return [triples for triples in blocks if triples]


# Types of input fields, each with the function that writes it into a prompt (`role.render_fields`)

Sources = Annotated[tuple[Source, ...], format_sources]
References = Annotated[tuple[Source, ...], format_references]
Steps = Annotated[tuple[Step, ...], format_steps]
Items = Annotated[tuple[str, ...], format_list]
Line = Annotated[str, escape_line]
Fenced = Annotated[str, escape_fences]
