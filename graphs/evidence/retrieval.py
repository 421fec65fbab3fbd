"""From search to citation: what the methods share.

A citation counts only if its quote stands literally in a passage that the run was shown, at known places of it.
Where a role names the right source but misquotes it, or quotes what does not say its answer, the sentence that contains
the answer is cited instead; what does not resolve in either way is dropped and named in the warnings.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.graphs.core import Context, Question, RetrievalPath
from sleuth.graphs.evidence.text_spans import find_words
from sleuth.tools.search import Mode, Query
from sleuth.tools.storage import Archive
from sleuth.tools.types import Hit, Passage

_NAME_WORDS = 6


class Round(TypedDict):
    """A query and the passages it found, best first, by archive reference."""

    query: str
    passages: list[str]


async def search_passages(context: Context, queries: dict[str, Query]) -> dict[str, list[str]]:
    """Searches side by side and archives the passages as they are now; returns their references, for the state."""
    found = await asyncio.gather(*(context.retriever.search(query) for query in queries.values()))
    references = await asyncio.gather(*(archive_passages(context.archive, map(_reached, hits)) for hits in found))
    return dict(zip(queries, references, strict=True))


async def archive_passages(archive: Archive, passages: Iterable[Passage]) -> list[str]:
    """Archives passages as they are now; returns their references."""
    return await archive.keep([serialize_passage(passage) for passage in passages])


def serialize_passage(passage: Passage) -> str:
    """A passage as the archive holds it."""
    return json.dumps(asdict(passage), ensure_ascii=False, sort_keys=True)


async def load_passages(archive: Archive, references: Iterable[str]) -> list[Passage]:
    """The passages behind references, as the run saw them."""
    return [deserialize_passage(record) for record in await archive.load(references)]


def deserialize_passage(record: str) -> Passage:
    """The passage of `serialize_passage`."""
    kept = json.loads(record)
    return PassageWithPath(**kept) if "way" in kept else Passage(**kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageWithPath(Passage):
    """A passage found rather along a name than by its own words."""

    way: RetrievalPath


def _reached(hit: Hit) -> Passage:
    if not (hit.why and hit.why.reasons and hit.why.parts["edges"] > hit.why.parts["alone"]):
        return hit.passage
    best = hit.why.reasons[0]
    if not best.source:  # the query itself has the name
        return hit.passage
    way = RetrievalPath(passage=best.source, name=" ".join(best.name.split()))
    return PassageWithPath(**asdict(hit.passage), way=way)


def as_sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    """Passages as a role reads them; their numbers count from 1 in this order."""
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)


def short_names(findings: Iterable[str]) -> tuple[str, ...]:
    """Those findings that are names, or as short as names, for a search that builds on them."""
    short = (finding.strip() for finding in findings if 0 < len(finding.split()) <= _NAME_WORDS)
    return tuple(dict.fromkeys(name for name in short if name.casefold() not in ("yes", "no")))


def make_query(text: str, state: Question, *, k: int, mode: Mode, seen: Iterable[str]) -> Query:
    """A question's next query, for passages not seen yet: it builds on those findings whose names it says."""
    names = short_names(found["finding"] for found in state.notes.values())
    said = tuple(name for name in names if any(find_words(name.split(), text)))
    return Query(text=text, k=k, mode=mode, hop=text != state.question, entities=said, seen=frozenset(seen))
