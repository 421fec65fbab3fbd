"""Pages from files (HTML, or JSON with the fields of the CRAG benchmark) or URLs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from sleuth.tools.documents import decode_html, read_bytes
from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.sources.web_pages.fetch import fetch_page
from sleuth.tools.sources.web_pages.page import Page

_HTML = (".html", ".htm", ".xhtml")


class PageRow(BaseModel):
    """A page as the benchmark has it."""

    page_result: str
    page_name: str | None = None
    page_url: str | None = None
    page_snippet: str | None = None
    page_last_modified: str | None = None

    def page(self) -> Page:
        """Return the page, as all others."""
        return Page(
            html=self.page_result,
            url=self.page_url or "",
            name=self.page_name or "",
            last_modified=self.page_last_modified or "",
            snippet=self.page_snippet or "",
        )


class _Question(BaseModel):
    """A question of the benchmark with its pages."""

    search_results: list[PageRow]


_JSON: TypeAdapter[PageRow | _Question | list[PageRow]] = TypeAdapter(PageRow | _Question | list[PageRow])


def read_page_file(path: Path) -> list[Page]:
    """Return the pages of a file: HTML, or JSON with one page, a list, or a question with its `search_results`.

    Raises:
        UsageError: the file is missing, or its suffix is not supported.
        DocumentError: the file cannot be read.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}. --page takes an HTML or JSON file, or a URL.")
    suffix = path.suffix.lower()
    if suffix not in (*_HTML, ".json"):
        raise UsageError(
            f"{path} is not a page: --page takes {', '.join(_HTML)} and .json files; `sleuth ingest` others."
        )
    try:
        data = read_bytes(path)
        return [Page(html=decode_html(data), name="")] if suffix in _HTML else pages_of_json(data)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from error


def pages_of_json(data: bytes | str) -> list[Page]:
    """Return pages with the benchmark's fields; raises DocumentError for anything else."""
    try:
        given = _JSON.validate_json(data)
    except ValidationError as error:
        raise DocumentError(
            'is not a page as JSON: write {"page_result": "<html>…", "page_name": …, "page_url": …}, or a list of them.'
        ) from error
    if isinstance(given, _Question):
        given = given.search_results
    return [row.page() for row in (given if isinstance(given, list) else [given])]


async def get_pages(places: Sequence[str]) -> list[Page]:
    """Return the pages at these places, in order; only http:// and https:// go to the network."""
    pages: list[Page] = []
    for place in places:
        if place.lower().startswith(("http://", "https://")):
            pages.append(await fetch_page(place))
        else:
            pages += await asyncio.to_thread(read_page_file, Path(place))
    return pages
