"""Read web pages in a worker process, so that a page that exceeds a limit of time or memory only fails itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace

from sleuth.tools.documents import Bounds, Worker, WorkerError
from sleuth.tools.sources.web_pages.extract import describe
from sleuth.tools.sources.web_pages.page import Page, PageText, unique_names, without_duplicates
from sleuth.tools.text import normalize, single_line

PAGE_SECONDS = 20.0
PAGE_MEGABYTES = 2048
MAX_HTML = 20 << 20
"""Characters of HTML that are looked at."""
MAX_PAGES = 100
_NO_LIMIT = 1_000_000
"""Seconds of processor time: the wall-clock limit of each page applies instead."""


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
    worker = Worker("page", Bounds(seconds=_NO_LIMIT, megabytes=megabytes))
    try:
        read = [await read_page(worker, page, seconds=seconds) for page in wanted[:MAX_PAGES]]
    finally:
        await asyncio.to_thread(worker.stop)
    if len(wanted) > MAX_PAGES:
        left_out = f"{len(wanted) - MAX_PAGES} further pages were left out: {MAX_PAGES} are read for one question"
        read[-1] = replace(read[-1], warnings=(*read[-1].warnings, left_out))
    ids = unique_names([page.id for page in read])
    return [replace(page, id=id) for page, id in zip(read, ids, strict=True)]


async def read_page(worker: Worker, page: Page, *, seconds: float) -> PageText:
    """Return the text of a page, or its snippet with a warning if it exceeded a limit."""
    if len(page.html) > MAX_HTML:
        cut = f"only the first {MAX_HTML:,} of {len(page.html):,} characters were looked at"
        page = replace(page, html=page.html[:MAX_HTML], warnings=(*page.warnings, cut))
    try:
        return PageText.from_fields(await asyncio.to_thread(worker.call, asdict(page), seconds=seconds))
    except asyncio.CancelledError:
        worker.close()
        raise
    except WorkerError as error:
        late = error.cause == "time"
        memory = f"more than {worker.bounds.megabytes:,} MB, or cannot be parsed"
        why = f"it took {f'longer than {seconds:g} s' if late else memory}"
    text = single_line(normalize(page.snippet))
    snippet = "its snippet is used instead" if text else "it has no snippet"
    return describe(page, None, text, [], [f"was given up, because {why}: {snippet}"])
