"""A web page attached to a question, and its extracted text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from sleuth.tools.text import Span


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A web page; all fields except its HTML or its snippet may be empty.

    `last_modified` is the server's own value; `snippet` is a search engine's excerpt; `warnings` report losses while
    fetching.
    """

    html: str
    url: str = ""
    name: str = ""
    last_modified: str = ""
    snippet: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of a page as Markdown; its first row is the header."""

    markdown: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageText:
    """The text of a page with the spans of its sentences, its tables, and warnings about losses.

    `id` is unique among the pages of a question: its URL, or its name if it has none.
    """

    id: str
    name: str
    url: str = ""
    last_modified: str = ""
    text: str = ""
    sentences: tuple[Span, ...] = ()
    tables: tuple[Table, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return one JSON text, the same for equal pages: it is archived by its hash."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "PageText":
        """Return the page from `to_json`."""
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "PageText":
        """Return the page with these fields, as JSON has them."""
        return _PAGE_TEXT.validate_python(fields)


_PAGE_TEXT = TypeAdapter(PageText)


def without_duplicates(pages: Sequence[Page]) -> list[Page]:
    """Return pages in order, each content once, since search engines return duplicates."""
    found: dict[str, Page] = {}
    for page in pages:
        found.setdefault(page.html or page.snippet, page)
    return list(found.values())


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, numbered if they repeat."""
    given: list[str] = []
    for name in names:
        number, free = 1, name
        while free in given:
            number += 1
            free = f"{name} ({number})"
        given.append(free)
    return given
