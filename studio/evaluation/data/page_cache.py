"""Pages that come with questions, as the CRAG benchmark has them: read when their question's turn comes, and once."""

import asyncio
import threading
from collections.abc import Iterable

import numpy as np

from sleuth.studio.evaluation.data.questions import GoldQuestion
from sleuth.studio.simulation.gold import Passages
from sleuth.tools.search.vectors import Embedder, Vectors
from sleuth.tools.sources.web_pages import PageText, read_pages

KEPT = 32
"""Questions whose pages are kept: systems take turns question by question."""
MAX_VECTORS = 50_000


class QuestionPages:
    """Reads one question's pages at a time, so that none is given up because others keep the machine busy."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._read: dict[str, list[PageText]] = {}

    async def of(self, question: GoldQuestion) -> list[PageText]:
        """Return the texts of a question's pages; an empty list if it has none."""
        if not question.pages:
            return []
        async with self._turn:
            if question.key not in self._read:
                self._read[question.key] = await read_pages(question.pages)
                if len(self._read) > KEPT:
                    del self._read[next(iter(self._read))]
            return self._read[question.key]


class CachedEmbedder:
    """An embedder that embeds a passage once: all systems search the same chunks of a question's pages."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self._turn = threading.Lock()

    def embed_passages(self, texts: list[str]) -> Vectors:
        """Return unit vectors, one for each text. Blocks."""
        with self._turn:
            if len(self._known) > MAX_VECTORS:
                self._known.clear()
            if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
                self._known |= dict(zip(new, self._embedder.embed_passages(new), strict=True))
            return np.stack([self._known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Return the embedder's vector. Blocks."""
        return self._embedder.embed_query(text)


def cache_embeddings(embedder: Embedder | None) -> Embedder | None:
    """Return the same embedder, which does nothing twice; None stays None."""
    return CachedEmbedder(embedder) if embedder else None


def page_passages(pages: Iterable[PageText]) -> Passages:
    """Return title and text of each page, its tables below, by the page's id."""
    return {page.id: (page.name, "\n".join([page.text, *(table.markdown for table in page.tables)])) for page in pages}
