"""Texts behind the gold ids of questions, in the collection and in prompts, and the pages of questions."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sleuth.agents.formatting import Source, escape_chat_markers, format_sources, parse_sources
from sleuth.agents.model import NamedModel
from sleuth.agents.roles.searching import parse_results
from sleuth.graphs.core.context import Services
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.tools.collection import Collection
from sleuth.tools.types import Passage
from sleuth.tools.web_pages.page import PageText
from sleuth.tools.web_pages.reading import read_pages

MAX_PAGES = 32
"""Questions whose pages are cached: the systems run question by question."""

Texts = Mapping[str, tuple[str, str]]
"""Title and text by id."""


class KnownGold:
    """Gold of questions: title and text of each gold passage or document in the collection, and the questions' pages.

    Pages are read for one question at a time, so that no page times out because others keep the machine busy.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._reading = asyncio.Lock()
        self._pages: dict[str, list[PageText]] = {}

    async def texts(self, question: GoldQuestion) -> Texts:
        """Return title and text of a question's gold by id; ids that are not in the collection are left out."""
        passages, documents = await self.known(question)
        texts = {id: (passage.title, passage.text) for id, passage in passages.items()}
        for id in documents:
            document = await self.collection.document(id)
            texts[id] = (document.title, document.text)
        return texts

    async def known(self, question: GoldQuestion) -> tuple[dict[str, Passage], set[str]]:
        """Return the passages that a question names by id, and the ids of the documents that it names."""
        passages = {passage.id: passage for passage in await self.collection.passages(question.gold)}
        return passages, await self.collection.known_ids([id for id in question.gold if id not in passages])

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


class Players(Protocol):
    """Plays roles of the runs, or finds passages, from the gold of each question.

    `model` replaces the model server; None if the server plays the other roles. `title` and `notice` accompany the
    numbers wherever they are shown; `command` is the one that evaluates with these players.
    """

    command: str
    title: str
    notice: str
    model: NamedModel | None

    def record(self) -> dict[str, Any]:
        """Return the options that are part of the evaluation's plan."""

    async def services(self, question: GoldQuestion, services: Services, gold: KnownGold) -> Services:
        """Return the services of one question's run."""


def shown_gold(texts: Texts, prompts: Iterable[str]) -> list[str]:
    """Return the gold ids whose text is a source in these prompts, complete or in part."""
    prompts = list(prompts)
    sources = {(source.title, source.text) for prompt in prompts for _, source in parse_sources(prompt) if source.text}
    results = {result for prompt in prompts for result in parse_results(prompt)}
    ids = []
    for id, (title, text) in texts.items():
        # title and text as a prompt contains them
        [(_, gold)] = parse_sources(escape_chat_markers(format_sources((Source(title=title, text=text),))))
        start = f"{gold.title}) "
        if any(name == gold.title and part in gold.text for name, part in sources) or any(
            result.startswith(start) and result[len(start) :] in gold.text for result in results
        ):
            ids.append(id)
    return sorted(ids)
