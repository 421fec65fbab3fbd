"""Gold of the questions: texts behind gold ids, pages of questions, and parts of a run that are taken from the gold."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from sleuth.agents.formatting import Source, escape_chat_markers, format_sources, parse_sources
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.agents.roles.searching import parse_results
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.simulation import Gold, SimulatedModel, gold_of, gold_on_pages
from sleuth.studio.simulation.parameters import ROLES
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName
from sleuth.tools.search import DocumentReader, Query, Retriever
from sleuth.tools.sources.web_pages.page import PageText
from sleuth.tools.sources.web_pages.reading import read_pages
from sleuth.tools.types import Hit, Passage

MAX_PAGES = 32
"""Questions whose pages are kept: systems take turns question by question."""


class KnownGold:
    """Gold known in advance: title and text of every gold passage or document by id, and the pages of questions.

    Pages are read for one question at a time, so that no page times out because others keep the machine busy.
    """

    def __init__(self, texts: Mapping[str, tuple[str, str]]) -> None:
        self.texts = texts
        self._reading = asyncio.Lock()
        self._pages: dict[str, list[PageText]] = {}

    def of(self, question: GoldQuestion) -> dict[str, tuple[str, str]]:
        """Return the texts of a question's gold that are in the collection."""
        return {id: self.texts[id] for id in question.gold if id in self.texts}

    def shown(self, question: GoldQuestion, prompts: Iterable[str]) -> list[str]:
        """Return the gold ids whose text is a source in these prompts, complete or in part."""
        prompts = list(prompts)
        gold = {id: _as_shown(title, text) for id, (title, text) in self.of(question).items()}
        sources = {
            (source.title, source.text) for prompt in prompts for _, source in parse_sources(prompt) if source.text
        }
        found = {passage for prompt in prompts for passage in parse_results(prompt)}
        return sorted(
            id
            for id, (title, text) in gold.items()
            if any(name == title and part in text for name, part in sources)
            or any(each.startswith(f"{title}) ") and each[len(title) + 2 :] in text for each in found)
        )

    async def pages(self, question: GoldQuestion) -> list[PageText]:
        """Return the texts of a question's pages; an empty list if it has none."""
        if not question.pages:
            return []
        async with self._reading:
            if question.key not in self._pages:
                self._pages[question.key] = await read_pages(question.pages)
                if len(self._pages) > MAX_PAGES:
                    del self._pages[next(iter(self._pages))]
            return self._pages[question.key]

    async def gold(self, question: GoldQuestion) -> Gold:
        """Return the gold from which a simulated model answers."""
        if not question.pages:
            return gold_of(question.row, self.of(question))
        passages = {
            page.id: (page.name, "\n".join([page.text, *(table.markdown for table in page.tables)]))
            for page in await self.pages(question)
        }
        return await asyncio.to_thread(gold_on_pages, question.row, passages)


async def read_gold(collection: Collection, questions: Sequence[GoldQuestion]) -> KnownGold:
    """Read the texts of the gold from the collection; ids that are not there are left out."""
    wanted = sorted({id for question in questions for id in question.gold})
    known = await collection.known_ids(wanted)
    texts = {passage.id: (passage.title, passage.text) for passage in await collection.passages(wanted)}
    for id in sorted(known - texts.keys()):
        document = await collection.document(id)
        texts[id] = (document.title, document.text)
    return KnownGold(texts)


def _as_shown(title: str, text: str) -> tuple[str, str]:
    """Return a title and a text as a prompt contains them."""
    [(_, source)] = parse_sources(escape_chat_markers(format_sources((Source(title=title, text=text),))))
    return source.title, source.text


PASSAGES = "passages"


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleParts:
    """Roles that are played from the gold without error, and whether every search finds a question's gold passages."""

    roles: frozenset[str] = frozenset()
    passages: bool = False

    @classmethod
    def parse(cls, names: Iterable[str]) -> Self:
        """Return the parts with these names: roles or "passages"; raise UnknownName for any other."""
        chosen = frozenset(names)
        for name in sorted(chosen - ROLES.keys() - {PASSAGES}):
            raise UnknownName("part", name, [PASSAGES, *ROLES], f"There are: {PASSAGES}, {', '.join(ROLES)}.")
        return cls(roles=chosen - {PASSAGES}, passages=PASSAGES in chosen)

    def names(self) -> list[str]:
        """Return the names as given on the command line."""
        return [*sorted(self.roles), *([PASSAGES] if self.passages else [])]


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleModel:
    """A model some of whose roles are answered from the gold of the run's question."""

    model: Model
    simulated: SimulatedModel
    roles: frozenset[str]

    @property
    def context_window(self) -> int:
        """The real model's."""
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        """Return the reply of the model that answers this role; raise ModelError if the real model does."""
        return await (self.simulated if request.role in self.roles else self.model).call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the real model's token count."""
        return await self.model.count_tokens(messages, role=role)


@dataclass(frozen=True, kw_only=True, slots=True)
class OracleRetriever:
    """Search that also finds the question's gold passages, in the places of the last that it found."""

    retriever: Retriever
    gold: Sequence[Passage]

    async def search(self, query: Query) -> list[Hit]:
        """Return as many passages as the search finds; missing gold passages replace the last ones."""
        found = await self.retriever.search(query)
        there, wanted = {hit.passage.id for hit in found}, {passage.id for passage in self.gold}
        missing = [passage for passage in self.gold if passage.id not in there][: query.k]
        spare = max(0, len(found) + len(missing) - query.k)
        others = [hit.passage.id for hit in found if hit.passage.id not in wanted]
        dropped = set(others[::-1][:spare])
        kept = [hit for hit in found if hit.passage.id not in dropped]
        lowest = kept[-1].score if kept else 0.0
        added = [Hit(passage=passage, score=lowest, rank=0) for passage in missing]
        return [replace(hit, rank=rank) for rank, hit in enumerate([*kept, *added][: query.k], start=1)]

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document, in order, as far as the search can read documents."""
        reader = self.retriever
        return await reader.passages_of(document_id) if isinstance(reader, DocumentReader) else []


async def gold_passages(collection: Collection, question: GoldQuestion) -> list[Passage]:
    """Return those that the question names; of a document that it names, all."""
    known = {passage.id: passage for passage in await collection.passages(question.gold)}
    documents = await collection.known_ids([id for id in question.gold if id not in known])
    found = []
    for id in question.gold:
        if id in known:
            found.append(known[id])
        elif id in documents:
            found += await collection.passages_of(id)
    return found
