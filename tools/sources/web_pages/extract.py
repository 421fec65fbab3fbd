"""Text and tables out of one page. Blocks, and may take long or much memory on a hostile page: see `reading`."""

from dataclasses import asdict
from typing import Any

from bs4 import BeautifulSoup

from sleuth.tools.documents import Bounds, html_title, parse_html, whole_page
from sleuth.tools.sources.web_pages.markup import visible_markup
from sleuth.tools.sources.web_pages.page import Page, PageText, Table
from sleuth.tools.sources.web_pages.sentences import sentences
from sleuth.tools.sources.web_pages.tables import take_tables
from sleuth.tools.text import normalise, one_line, title_from

MAX_TEXT = 200_000
"""Characters of a page's text that are kept; twice as much as the longest articles have."""
MAX_URL = 2_000


def extract(page: Page) -> PageText:
    """Reads a page: text by trafilatura, by BeautifulSoup where that finds none, its tables apart (section 3.1).

    A page without HTML is its snippet.
    """
    markup, warnings = visible_markup(normalise(page.html))
    soup = parse_html(markup)
    name = title_from(normalise(page.name)) or html_title(soup) or title_from(page.url) or "Page without a name"
    tables, cut = take_tables(soup)
    text, shortened = _bounded(_text(soup))
    if not text and not tables:
        text = one_line(normalise(page.snippet))
        warnings.append("nothing could be read: " + ("its snippet stands for it" if text else "it is empty"))
    return describe(page, name, text, tables, [*warnings, *cut, *shortened])


def extract_from_json(given: dict[str, Any], _bounds: Bounds) -> dict[str, Any]:
    """Run `extract` in a worker process."""
    return asdict(extract(Page(**{**given, "warnings": tuple(given["warnings"])})))


def describe(page: Page, name: str, text: str, tables: list[Table], warnings: list[str]) -> PageText:
    """What was read of a page, with what is known about it on one line each."""
    url = one_line(normalise(page.url))[:MAX_URL]
    return PageText(
        id=url or name,
        name=name,
        url=url,
        last_modified=title_from(normalise(page.last_modified)) or "",
        text=text,
        sentences=tuple(sentences(text)),
        tables=tuple(tables),
        warnings=tuple(f"{name}: {warning}" for warning in [*page.warnings, *warnings]),
    )


def _text(soup: BeautifulSoup) -> str:
    """One line per block; tables are gone already."""
    found = _article(str(soup)) or whole_page(soup)
    lines = map(one_line, found.split("\n"))
    return "\n".join(line for line in lines if line)


def _article(html: str) -> str:
    import trafilatura
    from lxml.etree import LxmlError

    try:
        return str(trafilatura.extract(html, include_comments=False) or "")
    except (LxmlError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return ""  # a page that it cannot read


def _bounded(text: str) -> tuple[str, list[str]]:
    if len(text) <= MAX_TEXT:
        return text, []
    end = text.rfind("\n", MAX_TEXT // 2, MAX_TEXT)
    kept = text[: end if end > 0 else MAX_TEXT]
    return kept, [f"only the first {len(kept):,} of {len(text):,} characters of text were kept"]
