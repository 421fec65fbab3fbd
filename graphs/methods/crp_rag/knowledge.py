"""Evidence of CRP-RAG's steps: summaries of passages, or inherited notes (section 3.3)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles import reading
from sleuth.graphs.core import Citation, Note, ask_or
from sleuth.graphs.evidence import as_sources, load_passages, strip_marks, verify_quotes
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Node, Nodes
from sleuth.tools.storage import Archive
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage


class Knowledge(TypedDict):
    """A summary of a node's passages, with citations."""

    text: str
    citations: list[Citation]


@dataclass(frozen=True, kw_only=True)
class StepEvidence:
    """Evidence to answer a step from: sources to read, and what the answer may cite.

    `note` is an inherited answer.
    """

    sources: tuple[Source, ...] = ()
    citations: Sequence[Citation] = ()
    shown: Sequence[Passage] = ()
    note: Note | None = None


@dataclass(frozen=True, kw_only=True)
class EvidenceLoader:
    """All evidence of a run for its nodes: inherited notes, passages by reference, summaries (None: not made)."""

    nodes: Nodes
    notes: Mapping[str, Note]
    passages: Mapping[str, list[str]]
    knowledge: Mapping[str, Knowledge] | None
    archive: Archive

    async def backing(self, keys: Iterable[str]) -> dict[str, StepEvidence]:
        """Return the evidence of each node, all loaded before the first call: after a crash, calls are matched by their
        order.
        """
        return {key: await self._of(key) for key in keys}

    async def _of(self, key: str) -> StepEvidence:
        """Return a note with the node's question, or its passages; for the question itself all notes too."""
        if known := inherited_notes(self.nodes, self.notes).get(key):
            return StepEvidence(sources=_as_sources([known]), note=known)
        notes = _as_sources(self.notes.values()) if key == SOURCE else ()
        shown = await load_passages(self.archive, self.passages.get(key, []))
        if self.knowledge is None:
            return StepEvidence(sources=(*notes, *as_sources(shown)), shown=shown)
        known_of = self.knowledge.get(key, Knowledge(text="", citations=[]))
        summary = Source(title=self.nodes[key]["content"], text=known_of["text"])
        summaries = (summary,) if summary.text else ()
        return StepEvidence(sources=(*notes, *summaries), citations=known_of["citations"], shown=shown)


def inherited_notes(nodes: Nodes, notes: Mapping[str, Note]) -> dict[str, Note]:
    """Return the notes of another run that answer a node's question, word for word, by node."""
    answers = {comparison_key(note["question"]): note for note in notes.values() if note["finding"]}
    return {key: answers[asked] for key, node in nodes.items() if (asked := comparison_key(node["content"])) in answers}


async def summarise(nodes: Nodes, shown: Mapping[str, Sequence[Passage]], model: ModelCaller) -> dict[str, Knowledge]:
    """Summarize the passages of each node in parallel (equation 8)."""
    said = await asyncio.gather(*(_summarise(nodes[key], found, model) for key, found in shown.items()))
    return dict(zip(shown, said, strict=True))


async def _summarise(node: Node, shown: Sequence[Passage], model: ModelCaller) -> Knowledge:
    given = reading.AggregateInput(step=node["content"], sources=as_sources(shown))
    loss = f"Nothing is known about {node['content']!r}."
    said = await ask_or(model, reading.AGGREGATE, given, reading.Knowledge(), loss)
    text = strip_marks(said.knowledge)
    return Knowledge(text=text, citations=verify_quotes(model, text, said.citations, shown) if text else [])


def _as_sources(notes: Iterable[Note]) -> tuple[Source, ...]:
    return tuple(Source(title=note["question"], text=note["finding"]) for note in notes if note["finding"])
