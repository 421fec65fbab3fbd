"""A web page attached to a question: its HTML, and its text with tables."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter

from sleuth.tools.text.tokenization import Span

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A web page; all fields except its HTML or its snippet may be empty.

    `last_modified` is the server's own value; `snippet` is a search engine's excerpt; `warnings` report losses while
    fetching. JSON has the names of the CRAG benchmark.
    """

    html: Annotated[str, Field(validation_alias="page_result")]
    url: Annotated[_Text, Field(validation_alias="page_url")] = ""
    name: Annotated[_Text, Field(validation_alias="page_name")] = ""
    last_modified: Annotated[_Text, Field(validation_alias="page_last_modified")] = ""
    snippet: Annotated[_Text, Field(validation_alias="page_snippet")] = ""
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
        return PAGE_TEXT.validate_json(text)


PAGE_TEXT = TypeAdapter(PageText)
