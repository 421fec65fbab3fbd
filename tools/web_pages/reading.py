"""Web pages attached to a question: files (HTML, or JSON of the CRAG benchmark), their text and their tables.

Pages are read in a worker process: a page that exceeds a limit only fails itself.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import accumulate, chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from sleuth.tools.documents.formats.html_format import (
    MAX_LAYOUT_CELL,
    decode_html,
    html_title,
    parse_html,
    table_rows,
    whole_page,
)
from sleuth.tools.documents.formats.tables import grid
from sleuth.tools.documents.resource_limits import Bounds, read_bytes
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.text.markdown import markdown_table
from sleuth.tools.text.normalization import normalize, single_line, title_from
from sleuth.tools.text.tokenization import sentence_spans
from sleuth.tools.web_pages.page import PAGE_TEXT, Page, PageText, Table

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

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
MAX_ROWS, MAX_COLUMNS = 2_000, 64
MAX_TABLE_CHARS = 100_000
"""Characters that all tables of one page may have."""

_BAR = re.compile(r"(?<!\\)\|")
_PARTS = ("table", "caption", "tbody", "thead", "tfoot", "tr", "th", "td")
_HTML = (".html", ".htm", ".xhtml")


class _Question(BaseModel):
    """A question of the benchmark with its pages."""

    search_results: list[Page]


_JSON: TypeAdapter[_Question | list[Page] | Page] = TypeAdapter(_Question | list[Page] | Page)


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
        if suffix in _HTML:
            return [Page(html=decode_html(data))]
        content = _JSON.validate_json(data)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from error
    except ValidationError as error:
        raise DocumentError(
            f'{path}: is not a page as JSON: write {{"page_result": "<html>…", "page_name": …, "page_url": …}}, or a '
            "list of them."
        ) from error
    pages = content.search_results if isinstance(content, _Question) else content
    return [pages] if isinstance(pages, Page) else pages


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
    unique = list(distinct.values())
    worker = Worker(f"{__name__}.extract", Bounds(seconds=_NO_LIMIT, megabytes=megabytes))
    try:
        texts = [await read_page(worker, page, seconds=seconds) for page in unique[:MAX_PAGES]]
    finally:
        await asyncio.to_thread(worker.stop)
    if len(unique) > MAX_PAGES:
        left_out = f"{len(unique) - MAX_PAGES} further pages were left out: {MAX_PAGES} are read for one question"
        texts[-1] = replace(texts[-1], warnings=(*texts[-1].warnings, left_out))
    ids: list[str] = []
    for text in texts:
        numbered = (f"{text.id} ({number})" for number in count(2))
        ids.append(next(id for id in chain([text.id], numbered) if id not in ids))
    return [replace(text, id=id) for text, id in zip(texts, ids, strict=True)]


async def read_page(worker: Worker, page: Page, *, seconds: float) -> PageText:
    """Return the text of a page, or its snippet with a warning if it exceeded a limit."""
    try:
        return PAGE_TEXT.validate_python(await asyncio.to_thread(worker.call, asdict(page), seconds=seconds))
    except asyncio.CancelledError:
        worker.close()
        raise
    except WorkerError as error:
        text = single_line(normalize(page.snippet))
        remedy = "its snippet is used instead" if text else "it has no snippet"
        return describe(page, None, text, [], [f"was given up, because it {error}: {remedy}"])


def visible_markup(html: str) -> tuple[str, list[str]]:
    """Return HTML without scripts, styles, comments and inlined data, truncated to MAX_MARKUP, and warnings."""
    # Not cut within a tag: what remained of the tag would be read as text.
    return _cut(_INLINE_DATA.sub("", _SILENT.sub("", html)), MAX_MARKUP, "<", "of HTML were read")


def _cut(text: str, limit: int, boundary: str, what: str) -> tuple[str, list[str]]:
    """Return the text up to the last boundary within the limit, and a warning if it is cut."""
    if len(text) <= limit:
        return text, []
    end = text.rfind(boundary, limit // 2, limit)
    beginning = text[: end if end > 0 else limit]
    return beginning, [f"only the first {len(beginning):,} of {len(text):,} characters {what}"]


def extract(request: dict[str, Any], _bounds: Bounds) -> dict[str, Any]:
    """Return a page's text by trafilatura, or by BeautifulSoup if that finds none, and its tables (section 3.1).

    A page without HTML is its snippet. This runs in a worker process.

    Args:
        request: the fields of a `Page`.

    Returns:
        The fields of a `PageText`.
    """
    page = Page(**{**request, "warnings": tuple(request["warnings"])})
    markup, warnings = visible_markup(normalize(page.html))
    soup = parse_html(markup, links=False)
    title = html_title(soup)
    tables, cut = take_tables(soup)
    text, shortened = _cut(_text(soup), MAX_TEXT, "\n", "of text were kept")
    if not text and not tables:
        text = single_line(normalize(page.snippet))
        warnings.append("nothing could be read: " + ("its snippet is used instead" if text else "it is empty"))
    return asdict(describe(page, title, text, tables, [*warnings, *cut, *shortened]))


def describe(page: Page, title: str | None, text: str, tables: list[Table], warnings: list[str]) -> PageText:
    """Return the text of a page, with its metadata on one line each; its own name takes precedence over the title."""
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
    """Return one line per block; the tables were removed before."""
    import trafilatura
    from lxml.etree import LxmlError

    try:
        article = trafilatura.extract(str(soup), include_comments=False)
    except (LxmlError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        article = None  # a page that it cannot read
    lines = map(single_line, (article or whole_page(soup)).split("\n"))
    return "\n".join(filter(None, lines))


def take_tables(soup: "BeautifulSoup") -> tuple[list[Table], list[str]]:
    """Remove data tables from a page, and return them with warnings about cuts.

    A table that contains another one, has a single row or column, or a cell of prose, is for layout: its content stays
    in the page as text.
    """
    tables: list[Table] = []
    warnings: list[str] = []
    for table in soup("table"):
        is_layout = table.get("role") in ("presentation", "none") or table.find("table") is not None
        rows = [] if is_layout else _grid(table)
        if _is_data(rows):
            caption = title_from(table.caption.get_text(" ") if table.caption else None) or ""
            if (total := len(table("tr"))) > len(rows):
                warnings.append(f"only {len(rows):,} of {total:,} rows of a table were read")
            table.extract()
            tables.append(Table(markdown=markdown_table(rows), caption=caption))
    for part in soup(_PARTS):
        part.name = "div"
    tables = [table for table in tables if any(map(str.isalnum, table.markdown))]
    lengths = accumulate(len(table.markdown) for table in tables)
    within_limit = [table for table, length in zip(tables, lengths, strict=True) if length <= MAX_TABLE_CHARS]
    if len(within_limit) < len(tables):
        warnings.append(f"only the first {len(within_limit)} of {len(tables)} tables were kept")
    return within_limit, warnings


def _is_data(rows: list[Sequence[str]]) -> bool:
    wide = len(rows) > 1 and max(map(len, rows)) > 1
    return wide and all(len(cell) <= MAX_LAYOUT_CELL for row in rows for cell in row)


def _grid(table: "Tag") -> list[Sequence[str]]:
    rows, headers = table_rows(table, limit=MAX_ROWS)
    return [cells[:MAX_COLUMNS] for _, cells in grid(enumerate(rows), headers=headers)]


def cell_name(markdown: str, place: int) -> str:
    """Return row and column of a character of a table; rows count from 1 below the header, which names the columns."""
    lines, number = markdown.split("\n"), markdown.count("\n", 0, place)
    bars = len(_BAR.findall(markdown[:place].rpartition("\n")[2]))
    at, header = min(max(bars, 1), len(_cells(lines[number])) or 1) - 1, _cells(lines[0])
    column = f"column {header[at]}" if at < len(header) and header[at] else "a column without a name"
    return f"row {number - 1}, {column}" if number > 1 else f"header, {column}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line)[1:-1]]
