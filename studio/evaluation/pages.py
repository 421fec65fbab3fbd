"""Pages that come with questions, as the CRAG benchmark has them: read when their question's turn comes, and once."""

import asyncio
from collections.abc import Iterable

from sleuth.agents.simulation.gold import Passages
from sleuth.studio.evaluation.questions import GoldQuestion
from sleuth.tools.pages.page import PageText
from sleuth.tools.pages.reading import read_pages

KEPT = 32
"""Questions whose pages are kept: systems take turns question by question."""


class PagesOf:
    """Reads one question's pages at a time, so that none is given up because others keep the machine busy."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._read: dict[str, list[PageText]] = {}

    async def of(self, question: GoldQuestion) -> list[PageText]:
        """What was read of a question's pages; nothing where it has none."""
        if not question.pages:
            return []
        async with self._turn:
            if question.key not in self._read:
                self._read[question.key] = await read_pages(question.pages)
                if len(self._read) > KEPT:
                    del self._read[next(iter(self._read))]
            return self._read[question.key]


def shown(pages: Iterable[PageText]) -> Passages:
    """Title and text of each page, its tables below, by the page's id."""
    return {page.id: (page.name, "\n".join([page.text, *(table.markdown for table in page.tables)])) for page in pages}
