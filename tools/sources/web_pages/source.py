"""Pages from wherever a person says that they are: files, or the network for what is a URL."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sleuth.tools.sources.web_pages.fetch import fetch_page
from sleuth.tools.sources.web_pages.files import read_page_file
from sleuth.tools.sources.web_pages.page import Page


async def get_pages(places: Sequence[str]) -> list[Page]:
    """The pages at these places, in order; only http:// and https:// go to the network."""
    return [page for place in places for page in await _at(place)]


async def _at(place: str) -> list[Page]:
    if place.lower().startswith(("http://", "https://")):
        return [await fetch_page(place)]
    return await asyncio.to_thread(read_page_file, Path(place))
