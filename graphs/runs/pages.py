"""Pages handed in with a question: kept with the run, searched instead of the collection or beside it."""

from collections.abc import Sequence
from typing import Any

from sleuth.graphs.persistence import Thread
from sleuth.tools.errors import UsageError
from sleuth.tools.search import Retriever
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.sources.web_pages import FusedRetriever, PageRetriever, PageText
from sleuth.tools.storage import Archive


async def keep_pages(archive: Archive, pages: Sequence[PageText], *, beside: bool) -> dict[str, Any]:
    """Archives what was read of pages; returns what a thread's options keep of it.

    A run goes on from the archive when the files are gone. Raises UsageError where there is nothing to read.
    """
    if not pages:
        return {}
    warnings = [warning for page in pages for warning in page.warnings]
    if not any(page.text or page.tables for page in pages):
        raise UsageError(f"Nothing could be read out of the pages. {'; '.join(warnings)}")
    return {"texts": await archive.keep([page.to_json() for page in pages]), "beside": beside, "warnings": warnings}


async def load_pages(archive: Archive, thread: Thread) -> tuple[PageText, ...]:
    """A thread's pages as they were read when it was started."""
    return tuple(map(PageText.from_json, await archive.load(_kept(thread).get("texts", []))))


def beside_collection(thread: Thread) -> bool:
    """Whether a thread searches the collection too."""
    return bool(_kept(thread).get("beside", False))


def page_warnings(thread: Thread) -> list[str]:
    """What was lost of a thread's pages, a line each."""
    return list(_kept(thread).get("warnings", []))


def searched(thread: Thread, pages: Sequence[PageText], collection: Retriever, embedder: Embedder | None) -> Retriever:
    """What a run searches: its pages, also the collection where that was asked for; only that where there are none."""
    if not pages:
        return collection
    over = PageRetriever.over(pages, embedder)
    return FusedRetriever(over, collection) if beside_collection(thread) else over


def _kept(thread: Thread) -> dict[str, Any]:
    return dict(thread.options.get("pages", {}))  # a thread of an older release has none
