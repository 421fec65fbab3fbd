"""Text and tables of web pages, read in a worker process: a page that exceeds a limit only fails itself."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.plain_formats import html_title, parse_html, whole_page
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.sources.web_pages.page import Page, PageText, Table
from sleuth.tools.sources.web_pages.tables import take_tables
from sleuth.tools.text import normalize, sentence_spans, single_line, title_from

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

PAGE_SECONDS = 20.0
PAGE_MEGABYTES = 2048
MAX_PAGES = 100
_NO_LIMIT = 1_000_000
"""Seconds of processor time: the wall-clock limit of each page applies instead."""
MAX_MARKUP = 4_000_000
"""Characters of HTML that are parsed; a parsed page takes about a hundred times as many bytes."""
MAX_TEXT = 200_000
"""Characters of a page's text that are kept; twice as much as the longest articles have."""
MAX_URL = 2_000

# As in a browser, a comment or script that is not closed extends to the end.
_SILENT = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\b[^>]*>?|\Z)"
    r"|<(template|noscript|svg|iframe)\b(?:.*?</\2\b[^>]*>?)?",
    re.IGNORECASE | re.DOTALL,
)
_INLINE_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=]+")


async def read_pages(
    pages: Sequence[Page], *, seconds: float = PAGE_SECONDS, megabytes: int = PAGE_MEGABYTES
) -> list[PageText]:
    """Return the texts of pages, each content once, in order; a page that exceeds a limit has a warning.

    Args:
        pages: at most MAX_PAGES; further ones are omitted, and the last one has a warning.
        seconds: the time limit of one page.
        megabytes: the memory limit of the reading process (on Linux).
    """
    distinct: dict[str, Page] = {}
    for page in pages:
        distinct.setdefault(page.html or page.snippet, page)
    wanted = list(distinct.values())
    worker = Worker("page", Bounds(seconds=_NO_LIMIT, megabytes=megabytes))
    try:
        read = [await read_page(worker, page, seconds=seconds) for page in wanted[:MAX_PAGES]]
    finally:
        await asyncio.to_thread(worker.stop)
    if len(wanted) > MAX_PAGES:
        left_out = f"{len(wanted) - MAX_PAGES} further pages were left out: {MAX_PAGES} are read for one question"
        read[-1] = replace(read[-1], warnings=(*read[-1].warnings, left_out))
    ids: list[str] = []
    for text in read:
        numbered = (f"{text.id} ({number})" for number in count(2))
        ids.append(next(id for id in chain([text.id], numbered) if id not in ids))
    return [replace(text, id=id) for text, id in zip(read, ids, strict=True)]


async def read_page(worker: Worker, page: Page, *, seconds: float) -> PageText:
    """Return the text of a page, or its snippet with a warning if it exceeded a limit."""
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


def visible_markup(html: str) -> tuple[str, list[str]]:
    """Return HTML without scripts, styles, comments and inlined data, truncated to MAX_MARKUP, and warnings."""
    seen = _INLINE_DATA.sub("", _SILENT.sub("", html))
    if len(seen) <= MAX_MARKUP:
        return seen, []
    # Not within a tag, or its rest would be read as text.
    end = seen.rfind("<", 0, MAX_MARKUP)
    kept = seen[: end if end > 0 else MAX_MARKUP]
    return kept, [f"only the first {len(kept):,} of {len(seen):,} characters of HTML were read"]


def extract(given: dict[str, Any], _bounds: Bounds) -> dict[str, Any]:
    """Return a page's text by trafilatura, or by BeautifulSoup if that finds none, and its tables (section 3.1).

    A page without HTML is its snippet. This runs in a worker process.

    Args:
        given: the fields of a `Page`.

    Returns:
        The fields of a `PageText`.
    """
    page = Page(**{**given, "warnings": tuple(given["warnings"])})
    markup, warnings = visible_markup(normalize(page.html))
    soup = parse_html(markup)
    title = html_title(soup)
    tables, cut = take_tables(soup)
    text, shortened = _bounded(_text(soup))
    if not text and not tables:
        text = single_line(normalize(page.snippet))
        warnings.append("nothing could be read: " + ("its snippet is used instead" if text else "it is empty"))
    return asdict(describe(page, title, text, tables, [*warnings, *cut, *shortened]))


def describe(page: Page, title: str | None, text: str, tables: list[Table], warnings: list[str]) -> PageText:
    """Return the text of a page, with its metadata on one line each; its given name takes precedence over the title."""
    name = title_from(normalize(page.name)) or title or title_from(page.url) or "Page without a name"
    url = single_line(normalize(page.url))[:MAX_URL]
    return PageText(
        id=url or name,
        name=name,
        url=url,
        last_modified=title_from(normalize(page.last_modified)) or "",
        text=text,
        sentences=tuple(sentence_spans(text, lines=False)),
        tables=tuple(tables),
        warnings=tuple(f"{name}: {warning}" for warning in [*page.warnings, *warnings]),
    )


def _text(soup: "BeautifulSoup") -> str:
    """Return one line per block; tables are gone already."""
    import trafilatura
    from lxml.etree import LxmlError

    try:
        article = trafilatura.extract(str(soup), include_comments=False)
    except (LxmlError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        article = None  # a page that it cannot read
    lines = map(single_line, (article or whole_page(soup)).split("\n"))
    return "\n".join(filter(None, lines))


def _bounded(text: str) -> tuple[str, list[str]]:
    if len(text) <= MAX_TEXT:
        return text, []
    end = text.rfind("\n", MAX_TEXT // 2, MAX_TEXT)
    kept = text[: end if end > 0 else MAX_TEXT]
    return kept, [f"only the first {len(kept):,} of {len(text):,} characters of text were kept"]
