"""What CRP-RAG's steps rest on: summaries of passages, or what another run has handed over (section 3.3)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.reading import aggregator
from sleuth.graphs.core import Citation, Note, ask_or
from sleuth.graphs.evidence import check, clean, load, sources
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Node, Nodes
from sleuth.tools.storage import Archive
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage


class Knowledge(TypedDict):
    """What a node's passages say about it, and where they say so."""

    text: str
    citations: list[Citation]


@dataclass(frozen=True, kw_only=True)
class Backing:
    """What a step may be answered from: sources to read, and what the answer may cite.

    `note` is the answer itself, where it was handed over.
    """

    sources: tuple[Source, ...] = ()
    citations: Sequence[Citation] = ()
    shown: Sequence[Passage] = ()
    note: Note | None = None


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """All that a run has for its nodes: notes from another run, passages by reference, summaries (None: not made)."""

    nodes: Nodes
    notes: Mapping[str, Note]
    passages: Mapping[str, list[str]]
    knowledge: Mapping[str, Knowledge] | None
    archive: Archive

    async def backing(self, keys: Iterable[str]) -> dict[str, Backing]:
        """What each node rests on, all loaded before the first ask: after a crash, asks are matched by their order."""
        return {key: await self._of(key) for key in keys}

    async def _of(self, key: str) -> Backing:
        """A note with the node's question, or its passages; for the question itself all notes too."""
        if known := handed_over(self.nodes, self.notes).get(key):
            return Backing(sources=_as_sources([known]), note=known)
        notes = _as_sources(self.notes.values()) if key == SOURCE else ()
        shown = await load(self.archive, self.passages.get(key, []))
        if self.knowledge is None:
            return Backing(sources=(*notes, *sources(shown)), shown=shown)
        known_of = self.knowledge.get(key, Knowledge(text="", citations=[]))
        summary = Source(title=self.nodes[key]["content"], text=known_of["text"])
        summaries = (summary,) if summary.text else ()
        return Backing(sources=(*notes, *summaries), citations=known_of["citations"], shown=shown)


def handed_over(nodes: Nodes, notes: Mapping[str, Note]) -> dict[str, Note]:
    """The nodes that a note from another run answers, word for word."""
    answers = {comparison_key(note["question"]): note for note in notes.values() if note["finding"]}
    return {key: answers[asked] for key, node in nodes.items() if (asked := comparison_key(node["content"])) in answers}


async def summarise(nodes: Nodes, shown: Mapping[str, Sequence[Passage]], asking: Desk) -> dict[str, Knowledge]:
    """What the passages found for each node say about it, side by side (equation 8)."""
    said = await asyncio.gather(*(_summarise(nodes[key], found, asking) for key, found in shown.items()))
    return dict(zip(shown, said, strict=True))


async def _summarise(node: Node, shown: Sequence[Passage], asking: Desk) -> Knowledge:
    given = aggregator.AggregateInput(step=node["content"], sources=sources(shown))
    loss = f"Nothing is known about {node['content']!r}."
    said = await ask_or(asking, aggregator.AGGREGATE, given, aggregator.Knowledge(), loss)
    text = clean(said.knowledge)
    return Knowledge(text=text, citations=check(asking, text, said.citations, shown) if text else [])


def _as_sources(notes: Iterable[Note]) -> tuple[Source, ...]:
    return tuple(Source(title=note["question"], text=note["finding"]) for note in notes if note["finding"])
