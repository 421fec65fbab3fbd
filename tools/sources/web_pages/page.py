"""A web page as it is handed in with a question, and what is read out of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Span = tuple[int, int]
"""Start and end of a piece of a text, in characters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page of the web; all but its HTML or its snippet may be unknown.

    `last_modified` is what the server said, in its own words; `snippet` what a search engine showed of the page;
    `warnings` what getting hold of it has lost.
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
    """What was read out of a page: its text with the spans of its sentences, its tables, and what was lost on the way.

    `id` tells it from the other pages of a question: its URL, or its name where it has none.
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
        """One JSON text, the same for equal pages: it is archived by its hash."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "PageText":
        """The page of `to_json`."""
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "PageText":
        """Return the page with these fields, as JSON has them."""
        return cls(
            **{
                **fields,
                "sentences": tuple((start, end) for start, end in fields["sentences"]),
                "tables": tuple(Table(**table) for table in fields["tables"]),
                "warnings": tuple(fields["warnings"]),
            }
        )


def distinct(pages: Sequence[Page]) -> list[Page]:
    """Pages in order, each content once: search engines give the same page several times."""
    found: dict[str, Page] = {}
    for page in pages:
        found.setdefault(page.html or page.snippet, page)
    return list(found.values())


def named_apart(names: Sequence[str]) -> list[str]:
    """The names with a number behind each that another one had before."""
    given: list[str] = []
    for name in names:
        number, free = 1, name
        while free in given:
            number += 1
            free = f"{name} ({number})"
        given.append(free)
    return given
