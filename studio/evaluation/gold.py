"""Gold of the questions: texts behind gold ids, pages of questions, and parts of a run that are taken from the gold."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sleuth.agents.formatting import Source, escape_chat_markers, format_sources, parse_sources
from sleuth.agents.roles.searching import parse_results
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.simulation import Gold, gold_of, gold_on_pages
from sleuth.studio.simulation.gold import Passages
from sleuth.studio.simulation.parameters import ROLES
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName
from sleuth.tools.search import DocumentReader, Query, Retriever
from sleuth.tools.sources.web_pages.page import PageText, read_pages
from sleuth.tools.types import Hit, Passage

MAX_PAGES = 32
"""Questions whose pages are kept: systems take turns question by question."""


class KnownGold:
    """Gold of questions: title and text of each gold passage or document in the collection, and the questions' pages.

    Pages are read for one question at a time, so that no page times out because others keep the machine busy.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._reading = asyncio.Lock()
        self._pages: dict[str, list[PageText]] = {}

    async def texts(self, question: GoldQuestion) -> Passages:
        """Return title and text of a question's gold by id; ids that are not in the collection are left out."""
        passages, documents = await self._known(question)
        texts = {id: (passage.title, passage.text) for id, passage in passages.items()}
        for id in documents:
            document = await self._collection.document(id)
            texts[id] = (document.title, document.text)
        return texts

    async def passages(self, question: GoldQuestion) -> list[Passage]:
        """Return the passages that a question names; of a document that it names, all."""
        known, documents = await self._known(question)
        found = []
        for id in question.gold:
            if id in known:
                found.append(known[id])
            elif id in documents:
                found += await self._collection.passages_of(id)
        return found

    async def _known(self, question: GoldQuestion) -> tuple[dict[str, Passage], set[str]]:
        """Return the passages that a question names by id, and the ids of the documents that it names."""
        passages = {passage.id: passage for passage in await self._collection.passages(question.gold)}
        return passages, await self._collection.known_ids([id for id in question.gold if id not in passages])

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
            return gold_of(question.row, await self.texts(question))
        passages = {
            page.id: (page.name, "\n".join([page.text, *(table.markdown for table in page.tables)]))
            for page in await self.pages(question)
        }
        return await asyncio.to_thread(gold_on_pages, question.row, passages)


def shown_gold(texts: Passages, prompts: Iterable[str]) -> list[str]:
    """Return the gold ids whose text is a source in these prompts, complete or in part."""
    prompts = list(prompts)
    gold = {id: _as_shown(title, text) for id, (title, text) in texts.items()}
    sources = {(source.title, source.text) for prompt in prompts for _, source in parse_sources(prompt) if source.text}
    found = {passage for prompt in prompts for passage in parse_results(prompt)}
    return sorted(
        id
        for id, (title, text) in gold.items()
        if any(name == title and part in text for name, part in sources)
        or any(each.startswith(f"{title}) ") and each[len(title) + 2 :] in text for each in found)
    )


def _as_shown(title: str, text: str) -> tuple[str, str]:
    """Return a title and a text as a prompt contains them."""
    [(_, source)] = parse_sources(escape_chat_markers(format_sources((Source(title=title, text=text),))))
    return source.title, source.text


PASSAGES = "passages"


def oracle_parts(names: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a run that are taken from the gold: roles in order, then "passages".

    A role is played without error; with "passages", every search finds a question's gold passages.

    Raises:
        UnknownName: a name is neither a role nor "passages".
    """
    for name in names:
        if name not in (PASSAGES, *ROLES):
            raise UnknownName("part", name, [PASSAGES, *ROLES], f"There are: {PASSAGES}, {', '.join(ROLES)}.")
    return tuple(sorted(set(names), key=lambda name: (name == PASSAGES, name)))


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
