"""A web page attached to a question, from a file (HTML, or JSON of the CRAG benchmark), and its extracted text."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from sleuth.tools.documents.formats.plain_formats import decode_html
from sleuth.tools.documents.loading import read_bytes
from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.text import Span

_HTML = (".html", ".htm", ".xhtml")
_Text = Annotated[str, BeforeValidator(lambda given: "" if given is None else given)]


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
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "PageText":
        """Return the page with these fields, as JSON has them."""
        return _PAGE_TEXT.validate_python(fields)


_PAGE_TEXT = TypeAdapter(PageText)


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
        found = _JSON.validate_json(data)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from error
    except ValidationError as error:
        raise DocumentError(
            f'{path}: is not a page as JSON: write {{"page_result": "<html>…", "page_name": …, "page_url": …}}, or a '
            "list of them."
        ) from error
    pages = found.search_results if isinstance(found, _Question) else found
    return [pages] if isinstance(pages, Page) else pages
