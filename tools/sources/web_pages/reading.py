"""Read web pages in a worker process, so that a page that exceeds a limit of time or memory only fails itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from sleuth.tools.documents import Bounds, Worker, WorkerError
from sleuth.tools.sources.web_pages.page import Page, PageText, unique_names, without_duplicates

PAGE_SECONDS = 20.0
PAGE_MEGABYTES = 2048
MAX_HTML = 20 << 20
"""Characters of HTML that are looked at."""
MAX_PAGES = 100
_NO_LIMIT = 1_000_000


async def read_pages(
    pages: Sequence[Page], *, seconds: float = PAGE_SECONDS, megabytes: int = PAGE_MEGABYTES
) -> list[PageText]:
    """Return the texts of pages, each content once, in order; a page that exceeds a limit has a warning.

    Args:
        pages: at most MAX_PAGES; further ones are omitted, and the last one has a warning.
        seconds: the time limit of one page.
        megabytes: the memory limit of the reading process (on Linux).
    """
    wanted = without_duplicates(pages)
    reader = Reader(seconds=seconds, megabytes=megabytes)
    try:
        read = [await reader.read(page) for page in wanted[:MAX_PAGES]]
    finally:
        await reader.stop()
    if len(wanted) > MAX_PAGES:
        left_out = f"{len(wanted) - MAX_PAGES} further pages were left out: {MAX_PAGES} are read for one question"
        read[-1] = replace(read[-1], warnings=(*read[-1].warnings, left_out))
    ids = unique_names([page.id for page in read])
    return [replace(page, id=id) for page, id in zip(read, ids, strict=True)]


@dataclass
class Reader:
    """Reader of single pages; `seconds` is the limit for the next page."""

    seconds: float
    megabytes: int
    _worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the worker, whose processor time is not limited: `seconds` limits the time of each page."""
        self._worker = Worker("page", Bounds(seconds=_NO_LIMIT, megabytes=self.megabytes))

    async def read(self, page: Page) -> PageText:
        """Return the text of a page, or its snippet with a warning if it exceeded a limit."""
        if len(page.html) > MAX_HTML:
            cut = f"only the first {MAX_HTML:,} of {len(page.html):,} characters were looked at"
            page = replace(page, html=page.html[:MAX_HTML], warnings=(*page.warnings, cut))
        try:
            read = await asyncio.to_thread(self._worker.call, asdict(page), seconds=self.seconds)
        except WorkerError as error:
            late = error.cause == "time"
            why = f"longer than {self.seconds:g} s" if late else f"more than {self.megabytes:,} MB, or cannot be parsed"
            return _given_up(page, f"it took {why}")
        except asyncio.CancelledError:
            self._worker.close()
            raise
        return PageText.from_fields(read)

    async def stop(self) -> None:
        """End the worker process."""
        await asyncio.to_thread(self._worker.stop)


def _given_up(page: Page, why: str) -> PageText:
    """Return a page of which only the snippet is known."""
    from sleuth.tools.sources.web_pages.extract import describe
    from sleuth.tools.text.normalization import normalize, single_line, title_from

    name = title_from(normalize(page.name)) or title_from(page.url) or "Page without a name"
    text = single_line(normalize(page.snippet))
    snippet = "its snippet is used instead" if text else "it has no snippet"
    return describe(page, name, text, [], [f"was given up, because {why}: {snippet}"])
