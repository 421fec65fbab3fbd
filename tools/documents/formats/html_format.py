"""Text out of HTML: pages, chapters of books, and mails."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.equations import equation
from sleuth.tools.documents.formats.marks import box, index, link, raised, struck
from sleuth.tools.documents.formats.tables import Span, markdown_tables
from sleuth.tools.text.encodings import decode
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

    Tags = Mapping[str, Sequence[Tag]]

MIN_KEPT_SHARE = 0.6
"""A page of which the article finder keeps less is converted as a whole."""
MAX_LAYOUT_CELL = 1_000
"""Characters; a table with a longer cell lays out prose."""
MAX_ROWSPAN = 65_534
"""Rows that a cell covers at most, as in browsers."""

HIDDEN = ("script", "style", "template", "noscript", "svg", "head", "nav")
_BOILERPLATE = ("header", "footer", "aside", "form")
_NOT_CONTENT = (*HIDDEN, *_BOILERPLATE)
_NOT_SHOWN = re.compile(r"\b(?:display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all)", re.IGNORECASE)
_STRUCK = re.compile(r"\btext-decoration(?:-line)?\s*:[^;]*\bline-through", re.IGNORECASE)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset({
    *_HEADINGS, "p", "li", "tr", "td", "th", "div", "section", "article", "blockquote", "pre", "dt", "dd", "address",
    "caption", "figcaption", "summary", "details", "fieldset", "legend", "option", "button", "textarea", "iframe",
    "main", *_BOILERPLATE,
})  # fmt: skip
_CELLS = ("th", "td")
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*>")
_EMPTY_LINES = re.compile(r"(?<![ \t])[ \t]*\n[ \t]*(?:\n\s*)?\n")
_LINE_END = re.compile(r"(?<![ \t\r])[ \t\r]*\n[ \t\r\n]*|\t")
_LINE = "\u2028"
"""A line end that is meant, unlike those of the markup."""
_ADDRESS = re.compile(r"\]\((?:(?!\]\()[^)\s])*\)")
_WORD = re.compile(r"\w+")
_BEGIN, _END, _TABLE = "\x02", "\x03", "\x04"
"""Marks in a page's text: the beginning and the end of an element that is no content, and the beginning of a table."""
_NOT_CONTENT_TEXT = re.compile(f"{_BEGIN}[^{_BEGIN}{_END}]*{_END}")


def decode_html(data: bytes, *, declared: str | None = None) -> str:
    """Return the markup of a page, in UTF-8 or in the encoding that it or its server declares."""
    from bs4.dammit import EncodingDetector

    return decode(data, declared=declared or EncodingDetector.find_declared_encoding(data, is_html=True))


def parse_html(markup: str, *, links: bool = True) -> "BeautifulSoup":
    """Return a page as a tree without hidden elements, in which marks that carry meaning are text.

    Args:
        markup: the page.
        links: write the addresses of links after their text.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(StringIO(_XML_DECLARATION.sub("", markup)), "lxml")  # a str could be the name of a file
    for tag in [tag for tag in _tags(soup) if tag.attrs and _is_hidden(tag)]:
        tag.decompose()
    tags: dict[str, list[Tag]] = defaultdict(list)
    for tag in _tags(soup):
        tags["s" if tag.attrs and _STRUCK.search(str(tag.get("style"))) else tag.name].append(tag)
    for tag in tags["br"]:
        tag.replace_with(_LINE)
    _write_signs(tags)
    _write_scripts(tags)
    if links:
        _write_links(tags)
    texts = {id(text): text for name in ("del", "s", "strike") for tag in tags[name] for text in tag.strings}
    for text in texts.values():
        text.replace_with(struck(text))
    return soup


def _tags(soup: "BeautifulSoup") -> Iterator["Tag"]:
    """Yield all elements; a search for each name would take most of the time of a page."""
    from bs4 import Tag

    return (element for element in soup.descendants if isinstance(element, Tag))


def _is_hidden(tag: "Tag") -> bool:
    is_hidden = ("hidden" in tag.attrs and tag["hidden"] != "until-found") or _NOT_SHOWN.search(str(tag.get("style")))
    return bool(is_hidden) and tag.name not in ("html", "body")


def _write_signs(tags: "Tags") -> None:
    """Write equations, boxes of forms, and readings above words."""
    from lxml import html

    for tag in tags["math"]:
        tag.replace_with(f" {equation(html.fragment_fromstring(str(tag)))} ")
    for tag in tags["input"]:
        if tag.get("type") in ("checkbox", "radio"):
            is_apart = str(tag.next_sibling or "")[:1].isspace()
            tag.replace_with(box(checked=tag.has_attr("checked")) + " " * (not is_apart))
    for tag in tags["rt"] if not tags["rp"] else ():
        tag.string = f"({tag.get_text()})"


def _write_scripts(tags: "Tags") -> None:
    """Write superscript text, and subscript text of several words; a link to a note in the page becomes [2]."""
    for tag in tags["sup"]:
        text, before = tag.get_text(), str(tag.find_previous(string=True) or "")
        is_note = text.strip().isalnum() and tag.find("a", href=re.compile("^#")) is not None
        tag.replace_with(f"[{text.strip()}]" if is_note else raised(text, before))
    for tag in tags["sub"]:
        if " " in (text := tag.get_text().strip()):
            tag.replace_with(index(text))


def _write_links(tags: "Tags") -> None:
    """Write the address of a link after its text, or after the first text of one around several blocks.

    One in a title often leads to the page itself.
    """
    in_titles = {id(tag) for heading in tags["h1"] for tag in heading("a")}
    for tag in tags["a"]:
        picture = tag.find("img", alt=True)
        text, address = tag.get_text() or str(picture["alt"] if picture else ""), str(tag.get("href", ""))
        written = link(text, address)
        if written == text or id(tag) in in_titles:
            continue
        if not any(getattr(inner, "name", None) in _BLOCKS for inner in tag.descendants):
            tag.string = written
        elif first := next(filter(str.strip, tag.strings), None):
            first.replace_with(link(first, address))


def read_html(data: bytes) -> Content:
    """Return the article of a page as Markdown with its tables, without menus; the whole page if no
    article is found.
    """
    soup = parse_html(decode_html(data))
    title, properties = html_title(soup), _html_properties(soup)
    show_pictures(soup)
    article = _article(str(soup))
    for tag in soup(_BOILERPLATE):
        tag.insert(0, _BEGIN)
        tag.append(_END)
    text = _render(soup, HIDDEN)
    page = text
    while _NOT_CONTENT_TEXT.search(page):
        page = _NOT_CONTENT_TEXT.sub("", page)
    if len(_words(article)) >= MIN_KEPT_SHARE * len(_words(page)):
        page = "\n\n".join(_in_article(text.split("\n\n"), article, set(page.split("\n\n"))))
    return Content(title, [Section(_without_marks(page))], *properties)


def _in_article(blocks: Sequence[str], article: str, content: set[str]) -> Iterator[str]:
    """Yield the blocks of a page that are in its article, and the tables in its content."""
    words = _words(article)
    article_words, article_triples = set(words), set(zip(words, words[1:], words[2:], strict=False))
    line = f" {' '.join(words)} "
    for block in blocks:
        block_words = _words(block)
        triples = list(zip(block_words, block_words[1:], block_words[2:], strict=False))
        if block.startswith(_TABLE):  # its pieces repeat words
            unique = set(block_words)
            is_in_article = block in content or len(unique - article_words) <= (1 - MIN_KEPT_SHARE) * len(unique)
        elif triples:
            is_in_article = sum(map(article_triples.__contains__, triples)) >= MIN_KEPT_SHARE * len(triples)
        else:
            is_in_article = f" {' '.join(block_words)} " in line
        if is_in_article:
            yield block


def _html_properties(soup: "BeautifulSoup") -> list[Any]:
    """Return author, date and tags."""
    meta = {
        str(tag.get("name") or tag.get("property")).lower(): tag.get("content")
        for tag in soup("meta")
        if tag.get("name") or tag.get("property")
    }
    names = (
        ("author", "dc.creator", "article:author"),
        ("article:published_time", "date", "dc.date", "dcterms.date"),
        ("keywords", "article:tag"),
    )
    return [next(filter(None, map(meta.get, candidates)), None) for candidates in names]


def html_title(soup: "BeautifulSoup") -> str | None:
    """Return the page's title without the site's name, or the first heading."""
    title = title_from(soup.title.get_text() if soup.title else None)
    heading = title_from(soup.h1.get_text(" ") if soup.h1 else None)
    return heading if heading and (not title or title.startswith(heading)) else title


def _article(html: str) -> str:
    import trafilatura

    return str(trafilatura.extract(html, include_tables=True, include_comments=False, favor_recall=True) or "")


def _words(text: str) -> list[str]:
    """Return the words of a text without the addresses of links."""
    return _WORD.findall(_ADDRESS.sub("]", text))


def show_pictures(soup: "BeautifulSoup") -> None:
    """Replace pictures by their alternative texts, and make their captions paragraphs, which article finders keep."""
    for picture in soup("img", alt=re.compile(r"\S")):
        alternative = single_line(str(picture["alt"]))
        is_inline = picture.find_parent("p") is not None
        picture.name, picture.string = ("span", f" {alternative} ") if is_inline else ("p", alternative)
    for caption in soup("figcaption"):
        caption.name = "p"
    for figure in soup("figure"):
        figure.name = "div"


def whole_page(soup: "BeautifulSoup", *, leave_out: Sequence[str] = _NOT_CONTENT) -> str:
    """Return every visible word of the page in order, with headings, list items and tables as Markdown.

    `leave_out`: elements that are not content; only HIDDEN ones are not in a book or mail, whose pictures have text.
    """
    show_pictures(soup)
    return _without_marks(_render(soup, leave_out))


def _render(soup: "BeautifulSoup", leave_out: Sequence[str]) -> str:
    for tag in soup(leave_out):
        tag.decompose()
    for table in soup("table"):
        rows, headers = table_rows(table) if not table.find("table") else ([], 0)
        is_layout = any(len(_text_of(cell)) > MAX_LAYOUT_CELL for row in rows for cell in row)
        if rows and not is_layout:
            pieces = markdown_tables(rows, headers=headers).split("\n\n")
            caption = single_line(table.caption.get_text()) if table.caption else ""
            table.replace_with(_lines("".join(f"\n\n{_TABLE}{piece}\n\n" for piece in [caption, *pieces] if piece)))
    for items in soup("ol"):
        for number, item in enumerate(items("li", recursive=False), start=1):
            item["value"] = f"{number}."
    for block in soup(_BLOCKS):
        if block.name in _HEADINGS:
            block.string = f"{'#' * int(block.name[1])} {_cell_text(block)}"
        is_item = block.name == "li"
        block.insert(0, _lines(f"\n{block.get('value', '-')} " if is_item else "\n\n"))
        block.append("" if is_item else _LINE * 2)
    return _EMPTY_LINES.sub("\n\n", _text(soup)).strip()


def _text(soup: "BeautifulSoup") -> str:
    """Return the text of a page; line ends of the markup are spaces outside preformatted text."""
    preformatted = {id(text) for tag in soup(("pre", "textarea")) for text in tag.strings}
    texts = (text if id(text) in preformatted else _LINE_END.sub(" ", text) for text in soup.strings)
    return "".join(texts).replace(_LINE, "\n")


def _lines(text: str) -> str:
    return text.replace("\n", _LINE)


def _without_marks(text: str) -> str:
    return re.sub(f"[{_BEGIN}{_END}{_TABLE}]", "", text).strip()


def table_rows(table: "Tag", *, limit: int | None = None) -> tuple[list[list[str | Span]], int]:
    """Return the cells of a table, and the number of its header rows."""
    rows = table("tr", limit=limit)
    is_header = (row.find_parent("thead") is not None or (not row("td") and bool(row("th"))) for row in rows)
    return [[_cell(cell) for cell in row(_CELLS)] for row in rows], sum(1 for _ in takewhile(bool, is_header))


def _cell(cell: "Tag") -> str | Span:
    columns, rows = _span(cell, "colspan"), _span(cell, "rowspan", zero=MAX_ROWSPAN)
    return Span(_cell_text(cell), columns, rows) if max(columns, rows) > 1 else _cell_text(cell)


def _cell_text(cell: "Tag") -> str:
    """Return the text of an element on one line, with a space between its blocks."""
    text, last = "", None
    for string in cell.strings:
        block = next((parent for parent in string.parents if parent is cell or parent.name in _BLOCKS), None)
        text += str(string) if block is last else f" {string}"
        last = block
    return single_line(text)


def _text_of(cell: str | Span) -> str:
    return cell if isinstance(cell, str) else cell.text or ""


def _span(cell: "Tag", name: str, *, zero: int = 1) -> int:
    """Return a number of rows or columns; `zero`: what 0 means."""
    value = str(cell.get(name, "1")).strip()
    return min(int(value), MAX_ROWSPAN) or zero if value.isdecimal() and len(value) < 6 else 1
