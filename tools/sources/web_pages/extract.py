"""Text and tables of one page. Blocks, and may take much time or memory on a hostile page: see `reading`."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents import Bounds, html_title, parse_html, whole_page
from sleuth.tools.sources.web_pages.page import Page, PageText, Table
from sleuth.tools.sources.web_pages.tables import take_tables
from sleuth.tools.text import normalize, sentence_spans, single_line, title_from

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

MAX_MARKUP = 4_000_000
"""Characters of HTML that are parsed; a parsed page takes about a hundred times as many bytes."""

_SILENT = re.compile(r"<!--|<(script|style|template|noscript|svg|iframe)\b", re.IGNORECASE)
_HIDES_THE_REST = ("script", "style")
_INLINE_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=]+")


def visible_markup(html: str) -> tuple[str, list[str]]:
    """Return HTML without scripts, styles, comments and inlined data, truncated to MAX_MARKUP, and warnings."""
    seen = _INLINE_DATA.sub("", "".join(_parts(html)))
    if len(seen) <= MAX_MARKUP:
        return seen, []
    # Not within a tag, or its rest would be read as text.
    end = seen.rfind("<", 0, MAX_MARKUP)
    kept = seen[: end if end > 0 else MAX_MARKUP]
    return kept, [f"only the first {len(kept):,} of {len(seen):,} characters of HTML were read"]


def _parts(html: str) -> list[str]:
    parts: list[str] = []
    unclosed: set[str] = set()
    start = 0
    while opening := _SILENT.search(html, start):
        parts.append(html[start : opening.start()])
        start = _end_of(html, opening, unclosed)
    return [*parts, html[start:]]


def _end_of(html: str, opening: re.Match[str], unclosed: set[str]) -> int:
    """Return the end of an opened element; as in a browser, an unclosed script or comment extends to the end.

    `unclosed` caches names without a closing tag in the rest, which would otherwise be searched for each opening.
    """
    name = (opening[1] or "").lower()
    if not name:
        end = html.find("-->", opening.end())
        return end + 3 if end >= 0 else len(html)
    closing = None if name in unclosed else re.compile(rf"</{name}\b", re.IGNORECASE).search(html, opening.end())
    if closing is None:
        unclosed.add(name)
        return len(html) if name in _HIDES_THE_REST else opening.end()
    end = html.find(">", closing.end())
    return end + 1 if end >= 0 else len(html)


MAX_TEXT = 200_000
"""Characters of a page's text that are kept; twice as much as the longest articles have."""
MAX_URL = 2_000


def extract(page: Page) -> PageText:
    """Return a page's text by trafilatura, or by BeautifulSoup if that finds none, and its tables (section 3.1).

    A page without HTML is its snippet.
    """
    markup, warnings = visible_markup(normalize(page.html))
    soup = parse_html(markup)
    title = html_title(soup)
    tables, cut = take_tables(soup)
    text, shortened = _bounded(_text(soup))
    if not text and not tables:
        text = single_line(normalize(page.snippet))
        warnings.append("nothing could be read: " + ("its snippet is used instead" if text else "it is empty"))
    return describe(page, title, text, tables, [*warnings, *cut, *shortened])


def extract_from_json(given: dict[str, Any], _bounds: Bounds) -> dict[str, Any]:
    """Run `extract` in a worker process."""
    return asdict(extract(Page(**{**given, "warnings": tuple(given["warnings"])})))


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
