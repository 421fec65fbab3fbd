import pytest

from sleuth.tools.documents.formats.content import Content
from sleuth.tools.documents.formats.html_format import read_html
from sleuth.tools.documents.formats.plain_formats import read_markdown, read_table
from sleuth.tools.errors import DocumentError

ARTICLE = "The weir house was built by Rosa Quill in 1843, and it has stood beside the river ever since. " * 4
PAGE = f"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>The weir house | Gazette</title></head><body>
<nav><a href="/">Home</a> <a href="/more">More</a></nav><main><h1>The weir house</h1><p>{ARTICLE}</p>
<table><caption>Keepers</caption><tr><th>Keeper</th><th>Years</th></tr>
<tr><td>Rosa Quill</td><td>1843&ndash;50</td></tr><tr><td>Tom Ash</td><td>1850&ndash;61</td></tr></table>
<h2>Later</h2><p>{ARTICLE}</p><ul><li>flood</li><li>fire</li></ul></main>
<footer>Cookies are used here.</footer><script>var x = "no text";</script></body></html>"""


def rows(text: str) -> list[list[str]]:
    """The cells of all table lines."""
    return [
        [cell.strip() for cell in line.strip(" |").split("|")] for line in text.splitlines() if line.startswith("|")
    ]


def title_and_text(content: Content) -> tuple[str | None, str]:
    return content.title, "".join(section.text for section in content.sections)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n# The *mill* #\n\n# Second", "The *mill*"),
        ("## Only a second level", None),
        ("```sh\n# a comment\n```\n\n# Real", "Real"),
        ("#hashtag\ntext", None),
        ("````md\n```sh\n# a comment\n```\n# another\n````\n\n# Real", "Real"),
        ("~~~\n```\n# a comment\n~~~\n\n# Real", "Real"),
        ("```\n# never closed", None),
        ("<!--\n# hidden\n-->\n\n# Real", "Real"),
        ("The mill\n========\n\n# Second", "The mill"),
    ],
)
def test_a_markdown_title_is_the_first_top_heading(text: str, title: str | None) -> None:
    assert title_and_text(read_markdown(text.encode())) == (title, text)


def test_a_page_becomes_markdown_without_its_furniture() -> None:
    title, text = title_and_text(read_html(PAGE.encode()))
    assert title == "The weir house"
    assert text.count(ARTICLE.strip()) == 2
    assert "## Later" in text
    assert "- flood" in text
    assert text.index("Keepers") < text.index("Rosa Quill |")
    assert [row for row in rows(text) if "---" not in row[0]] == [
        ["Keeper", "Years"],
        ["Rosa Quill", "1843–50"],
        ["Tom Ash", "1850–61"],
    ]
    for furniture in ("Home", "Cookies", "no text"):
        assert furniture not in text


def test_a_short_page_keeps_its_words_and_its_table() -> None:
    page = b"<h1>Ferries</h1><p>Two ran.</p><table><tr><th>Name<th>Built<tr><td>Heron<td>1843</table><p>Both sank.</p>"
    _, text = title_and_text(read_html(page))
    assert rows(text) == [["Name", "Built"], ["---", "---"], ["Heron", "1843"]]
    assert text.index("Two ran.") < text.index("Heron") < text.index("Both sank.")


TITLES = {
    "<title>Gazette</title><p>text</p>": "Gazette",
    "<title>The mill | Gazette</title><h1>The\n mill</h1><p>text</p>": "The mill",
    "<title>The mill</title><h1>Gazette</h1><p>text</p>": "The mill",
    "<h1>The mill</h1><p>text</p>": "The mill",
    "<title></title><h1> </h1><p>text</p>": None,
}


def test_a_page_title_goes_without_the_name_of_the_site() -> None:
    assert {page: read_html(page.encode()).title for page in TITLES} == TITLES
    for empty in (b"", b"<html><body></body></html>", b"<script>alert(1)</script>", b"<!-- only -->"):
        assert title_and_text(read_html(empty))[1].strip() == ""


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"http://example.org/page", "page"),
        (b"page.html", "page.html"),
        (b"<?xml version='1.0'?><rss><b>x y</b></rss>", "x y"),
        (b"<div>" * 600 + b"deep inside" + b"</div>" * 600, "deep inside"),
        ("<meta charset='windows-1250'><p>Zażółć gęślą jaźń</p>".encode("cp1250"), "Zażółć gęślą jaźń"),
    ],
    ids=["address", "file name", "xml", "deep", "declared encoding"],
)
def test_odd_pages_are_read_without_a_warning(page: bytes, text: str) -> None:
    assert text in title_and_text(read_html(page))[1]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_rows_name_their_columns(delimiter: str) -> None:
    table = "name,built,note\nHeron,1843,\nGrey Wagtail,1851,sunk".replace(",", delimiter)
    rows = "name: Heron; built: 1843\nname: Grey Wagtail; built: 1851; note: sunk"
    assert title_and_text(read_table(table.encode())) == (None, rows)


def test_quoted_cells_and_ragged_rows() -> None:
    table = b'name,note\r\n"Quill, Rosa","two\r\nlines"\r\n\r\n,\r\nAsh,"said ""no""",extra\r\nBrock\r\n'
    rows = ["name: Quill, Rosa; note: two lines", 'name: Ash; note: said "no"; extra', "name: Brock"]
    assert title_and_text(read_table(table))[1].splitlines() == rows
    assert title_and_text(read_table(b"name,built\n")) == (None, ""), "only a header"
    with pytest.raises(DocumentError, match="quotes"):
        read_table(b'name,note\nHeron,"' + b"endless words " * 20_000)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_line_ends_of_other_kinds_do_not_split_a_row(end: str, quote: str) -> None:
    table = f"boat,built\n{quote}Grey{end}Heron{quote},1843\nAsh,1851\n"
    assert title_and_text(read_table(table.encode()))[1] == "boat: Grey Heron; built: 1843\nboat: Ash; built: 1851"
