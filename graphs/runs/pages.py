"""Pages passed with a question: stored with the run, searched instead of the collection or in addition to it."""

from collections.abc import Sequence
from typing import Any

from sleuth.graphs.persistence import Thread
from sleuth.tools.errors import UsageError
from sleuth.tools.search import FilteredRetriever, Retriever
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.sources.web_pages import FusedRetriever, PageRetriever, PageText
from sleuth.tools.storage import Archive, parse_filter


async def store_pages(archive: Archive, pages: Sequence[PageText], *, beside: bool) -> dict[str, Any]:
    """Archive the text of pages, so that a run can resume without their files; return the entry of a thread's options.

    Raises:
        UsageError: the pages have no text.
    """
    if not pages:
        return {}
    warnings = [warning for page in pages for warning in page.warnings]
    if not any(page.text or page.tables for page in pages):
        raise UsageError(f"The pages contain no readable text. {'; '.join(warnings)}")
    return {"texts": await archive.keep([page.to_json() for page in pages]), "beside": beside, "warnings": warnings}


async def load_pages(archive: Archive, thread: Thread) -> tuple[PageText, ...]:
    """Return the pages of a thread as they were when it was started."""
    return tuple(map(PageText.from_json, await archive.load(_options_of(thread).get("texts", []))))


def searches_collection_too(thread: Thread) -> bool:
    """Return whether a thread searches the collection in addition to its pages."""
    return bool(_options_of(thread).get("beside", False))


def filter_option(where: str) -> dict[str, str]:
    """Return the entry of a thread's options for a filter; raise UsageError if it cannot be parsed."""
    return {"where": where.strip()} if parse_filter(where).terms else {}


def filter_of(thread: Thread) -> str:
    """Return the filter of the documents that a thread searches; empty if it searches all."""
    return str(thread.options.get("where", ""))


def page_warnings(thread: Thread) -> list[str]:
    """Return one line for each problem of a thread's pages."""
    return list(_options_of(thread).get("warnings", []))


def make_retriever(
    thread: Thread, pages: Sequence[PageText], collection: Retriever, embedder: Embedder | None
) -> Retriever:
    """Return the retriever of a run: over its pages, and over the collection on request or if there are none.

    Of the collection only the documents that match the run's filter are searched.
    """
    if where := filter_of(thread):
        collection = FilteredRetriever(collection, where)
    if not pages:
        return collection
    over = PageRetriever.over(pages, embedder)
    return FusedRetriever(over, collection) if searches_collection_too(thread) else over


def _options_of(thread: Thread) -> dict[str, Any]:
    return dict(thread.options.get("pages", {}))  # threads of older releases have none
