"""Web pages attached to a question: fetched on request, read as text and tables, chunked and searched."""

from sleuth.tools.sources.web_pages.fetch import get_pages
from sleuth.tools.sources.web_pages.page import Page, PageText, Table
from sleuth.tools.sources.web_pages.reading import read_pages
from sleuth.tools.sources.web_pages.retriever import (
    FusedRetriever,
    PageRetriever,
    is_page_table,
    table_passages,
    text_passages,
)
from sleuth.tools.sources.web_pages.tables import cell_at

__all__ = [
    "FusedRetriever",
    "Page",
    "PageRetriever",
    "PageText",
    "Table",
    "cell_at",
    "get_pages",
    "is_page_table",
    "read_pages",
    "table_passages",
    "text_passages",
]
