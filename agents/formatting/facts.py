"""The sub-queries asked so far with what was found for each, as numbered facts (RAS, sections 3.1 and 3.3)."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting.sources import Source, unfenced
from sleuth.tools.storage import Triple

Numbers = Annotated[list[Annotated[int, Field(ge=1, le=999)]], Field(max_length=40, json_schema_extra={"maxItems": 6})]
"""The facts that something follows from; few, as guided decoding must come to an end."""

_BLOCK = re.compile(
    r"^<source (?P<at>\d+)>\n(?P<facts>(?:(?!</?source ).*+\n)*?(?!</?source ).*+)\n</source (?P=at)>$", re.MULTILINE
)
_FACT = re.compile(r"^\[\d+\] S> (.*) \| P> (.*) \| O> (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SubQuery:
    """A query that was searched with, and its answer where one was found."""

    text: str
    finding: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts(Source):
    """Numbered facts from one passage, a line each; `query` counts from 1: the sub-query that found them.

    A source, so that where the context is small the last ones give way: put the best first.
    """

    query: int
    title: str = ""


def render(queries: tuple[SubQuery, ...], facts: tuple[Facts, ...]) -> str:
    """Each sub-query with its finding and its facts, fenced; says so where there are none."""
    if not queries:
        return "(nothing yet)"
    return "\n".join(_block(at, query, facts) for at, query in enumerate(queries, start=1))


def fact(number: int, triple: Triple) -> str:
    """A triple as the roles are shown it, in a line."""
    subject, predicate, object = triple
    return f"[{number}] S> {subject} | P> {predicate} | O> {object}"


def in_prompt(text: str) -> list[list[Triple]]:
    """The triples in a prompt, as `render` has put them there, those of each sub-query; none of one without any."""
    blocks = (_FACT.findall(block["facts"]) for block in _BLOCK.finditer(text))
    return [triples for triples in blocks if triples]


def _block(at: int, query: SubQuery, facts: tuple[Facts, ...]) -> str:
    said = [f"[SUBQ] {_line(query.text)}", *([f"Finding: {_line(query.finding)}"] if query.finding else [])]
    lines = [unfenced(found.text) for found in facts if found.query == at] or ["(nothing new)"]
    return "\n".join([*said, f"<source {at}>", *lines, f"</source {at}>"])


def _line(text: str) -> str:
    return unfenced(" ".join(text.split()))
