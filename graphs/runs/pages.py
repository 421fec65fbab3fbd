"""Pages passed with a question: stored with the run, searched instead of the collection or in addition to it."""

from collections.abc import Sequence

from sleuth.graphs.persistence import StoredPages, Thread
from sleuth.tools.errors import UsageError
from sleuth.tools.search import Retriever
from sleuth.tools.search.retriever import FilteredRetriever
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.sources.web_pages.page import PageText
from sleuth.tools.sources.web_pages.retriever import FusedRetriever, PageRetriever
from sleuth.tools.storage import Archive


async def store_pages(archive: Archive, pages: Sequence[PageText], *, with_collection: bool) -> StoredPages:
    """Archive the text of pages, so that a run can resume without their files.

    Raises:
        UsageError: the pages have no text.
    """
    if not pages:
        return StoredPages()
    warnings = [warning for page in pages for warning in page.warnings]
    if not any(page.text or page.tables for page in pages):
        raise UsageError(f"The pages contain no readable text. {'; '.join(warnings)}")
    texts = await archive.keep([page.to_json() for page in pages])
    return StoredPages(texts=list(texts), beside=with_collection, warnings=warnings)


async def load_pages(archive: Archive, thread: Thread) -> tuple[PageText, ...]:
    """Return the pages of a thread as they were when it was started."""
    return tuple(map(PageText.from_json, await archive.load(thread.options.pages.texts)))


def make_retriever(
    thread: Thread, pages: Sequence[PageText], collection: Retriever, embedder: Embedder | None
) -> Retriever:
    """Return the retriever of a run: over its pages, and over the collection on request or if there are none.

    Of the collection only the documents that match the run's filter are searched.
    """
    if where := thread.options.where:
        collection = FilteredRetriever(collection, where)
    if not pages:
        return collection
    over = PageRetriever.over(pages, embedder)
    return FusedRetriever(over, collection) if thread.options.pages.beside else over
