"""Search for passages, and their form for roles and for queries."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.graphs.core.answer import Citation, RetrievalPath
from sleuth.graphs.core.context import SearchSettings
from sleuth.graphs.core.node import Call, gather_by_key
from sleuth.graphs.core.passages import RetrievedPassage
from sleuth.graphs.core.state import PassageRef, Question
from sleuth.graphs.evidence.text_spans import find_words
from sleuth.tools.search import DocumentReader, Query
from sleuth.tools.search.langchain import traced_search
from sleuth.tools.types import Hit, Passage

_NAME_WORDS = 6
_PATHS = 3
"""Paths to a passage that are stored with a run."""


class Round(TypedDict):
    """A query and the passages it found, best first."""

    query: str
    passages: list[PassageRef]


async def search_passages(call: Call[Any], queries: dict[str, Query]) -> dict[str, list[str]]:
    """Search in parallel, archive the passages, and return their references for the state.

    A record of each search, with the scores and paths of its passages, is archived for the explorer of runs.
    Notes of the searches, for instance that the knowledge graph is empty, become warnings of the run.
    """
    context = call.context
    results = await gather_by_key({key: traced_search(context.retriever, query) for key, query in queries.items()})
    if notes := search_notes(hit for hits in results.values() for hit in hits):
        call.model.warn(*notes)
    references = await gather_by_key({key: call.archive(map(_retrieved, hits)) for key, hits in results.items()})
    records = [_search_record(query, results[key], references[key]) for key, query in queries.items()]
    call.searches += await context.archive.keep(records)
    return references


async def search_once(call: Call[Any], query: Query) -> list[str]:
    """Search as `search_passages` does, for one query."""
    return (await search_passages(call, {"": query}))[""]


async def read_around(call: Call[Any], reference: str, *, reach: int) -> list[str]:
    """Archive the passages before and after one in its document, and return their references, in order.

    Args:
        call: the execution of the node; a retriever that cannot read documents is warned of.
        reference: the archived passage.
        reach: passages to read on each side.
    """
    retriever, (passage,) = call.context.retriever, call.passages([reference])
    if not isinstance(retriever, DocumentReader):
        call.model.warn("This retriever finds passages only: the passages around one cannot be read.")
        return []
    document = await retriever.passages_of(passage.document_id)
    places = [at for at, other in enumerate(document) if other.id == passage.id]
    if not places:
        call.model.warn(f"Passage {passage.id} is no longer in the collection: nothing around it can be read.")
        return []
    at = places[0]
    return await call.archive([*document[max(0, at - reach) : at], *document[at + 1 :][:reach]])


async def mark_changed(citations: Iterable[Citation], reader: DocumentReader) -> None:
    """Mark citations whose document was updated after the answer, so that the cited passage lacks the quote."""
    for citation in citations:
        passages = await reader.passages_of(citation["document"]) if citation["passage"] else []
        if passages and not any(citation["quote"] in each.text for each in passages if each.id == citation["passage"]):
            citation["changed"] = True


def search_notes(hits: Iterable[Hit]) -> list[str]:
    """Return each note of the hits once: why a search was not the requested one."""
    return list(dict.fromkeys(hit.why.note for hit in hits if hit.why and hit.why.note))


def _search_record(query: Query, hits: Sequence[Hit], references: Sequence[str]) -> str:
    """Return a search in the form of the archive; passages are named by their references, best first."""
    records = [
        {
            "passage": reference,
            "score": hit.score,
            "parts": dict(hit.why.parts) if hit.why else {},
            "paths": [
                {"kind": reason.kind, "source": reason.source, "name": reason.name, "sentence": reason.sentence}
                for reason in (hit.why.reasons if hit.why else ())[:_PATHS]
            ],
        }
        for hit, reference in zip(hits, references, strict=True)
    ]
    return json.dumps({"query": query.text, "mode": query.mode, "hits": records}, ensure_ascii=False, sort_keys=True)


def _retrieved(hit: Hit) -> Passage:
    """Return the passage of a hit with the name along which it was reached.

    A passage that was found by its own words rather than along a name has no path.
    """
    why, way = hit.why, None
    if why and why.reasons and why.parts["edges"] > why.parts["alone"]:
        best = why.reasons[0]  # without a source the query itself has the name
        way = RetrievalPath(passage=best.source, name=" ".join(best.name.split())) if best.source else None
    return RetrievedPassage(**asdict(hit.passage), way=way) if way else hit.passage


def as_sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    """Return passages in the form that roles read, numbered from 1 in this order."""
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)


def short_names(findings: Iterable[str]) -> tuple[str, ...]:
    """Return the findings that are names, or as short as names, for a search that builds on them."""
    short = (finding.strip() for finding in findings if 0 < len(finding.split()) <= _NAME_WORDS)
    return tuple(dict.fromkeys(name for name in short if name.casefold() not in ("yes", "no")))


def make_query(settings: SearchSettings, text: str, state: Question, **about: object) -> Query:
    """Return the next query of a question, for passages not seen yet; it builds on the findings whose names it
    contains.
    """
    names = short_names(note["finding"] for note in state.notes.values())
    entities = tuple(name for name in names if any(find_words(name.split(), text)))
    return settings.query(text, hop=text != state.question, entities=entities, **about)
