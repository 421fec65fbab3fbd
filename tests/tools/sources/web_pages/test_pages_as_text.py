"""Files of pages, their visible markup, and their tables."""

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from linear_time import takes_linear_time

from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.web_pages.page import Page, PageText, Table
from sleuth.tools.web_pages.reading import MAX_MARKUP, cell_name, read_page_file, take_tables, visible_markup

ROW = {
    "page_name": "Ferries",
    "page_url": "https://a.example/f",
    "page_snippet": "Two ran.",
    "page_result": "<p>Two ran.</p>",
    "page_last_modified": None,
}
PAGE = Page(html="<p>Two ran.</p>", url="https://a.example/f", name="Ferries", snippet="Two ran.")


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("content", [ROW, [ROW], {"query": "how many?", "search_results": [ROW]}])
def test_pages_as_the_benchmark_has_them(tmp_path: Path, content: object) -> None:
    assert read_page_file(written(tmp_path / "pages.json", json.dumps(content).encode())) == [PAGE]


def test_encoding_of_a_page_is_found(tmp_path: Path) -> None:
    declared, wrong = '<meta charset="windows-1251"><p>Мельница</p>', '<meta charset="shift_jis"><p>Mühle</p>'
    assert read_page_file(written(tmp_path / "page.HTML", declared.encode("cp1251"))) == [Page(html=declared)]
    assert read_page_file(written(tmp_path / "page.htm", wrong.encode())) == [Page(html=wrong)]


@pytest.mark.parametrize(
    ("name", "data", "kind", "reason"),
    [
        ("page.json", b"{}", DocumentError, "page_result"),
        ("page.json", b'[{"page_result": 3}]', DocumentError, "is not a page as JSON"),
        ("page.html", b"", DocumentError, "empty"),
        ("page.html", b"\x00\x01\x02" * 99, DocumentError, "binary"),
        ("page.pdf", b"%PDF-", UsageError, "sleuth ingest"),
        ("none.html", None, UsageError, "There is no file"),
    ],
)
def test_file_that_is_no_page_has_a_reason(
    tmp_path: Path, name: str, data: bytes | None, kind: type[Exception], reason: str
) -> None:
    path = tmp_path / name if data is None else written(tmp_path / name, data)
    with pytest.raises(kind, match=reason):
        read_page_file(path)


def test_what_was_read_comes_back_from_json() -> None:
    page = PageText(
        id="u", name="Fähren", text="Two.", sentences=((0, 4),), tables=(Table(markdown="| a |"),), warnings=("w",)
    )
    assert PageText.from_json(page.to_json()) == page


TAGS = st.sampled_from(
    ["<script>", "</script>", "<STYLE", "</style >", "<!--", "-->", "<svg>", "</svg>", "text", "<p>", ">"]
)


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("a<script>var x = '<p>no';</script >b", "ab"),
        ("a<STYLE type=x>p {}</Style\n>b", "ab"),
        ("a<!-- <p>no --> b", "a b"),
        ("a<svg><title>no</title></svg><noscript>no</noscript>b", "ab"),
        ("a<script>no", "a"),
        ("a<!-- no", "a"),
        ("a<svg><p>b", "a><p>b"),
        ("<scripted>b", "<scripted>b"),
        ('<img src="data:image/png;base64,AAAA=">', '<img src="">'),
    ],
)
def test_what_nobody_sees_goes(html: str, left: str) -> None:
    assert visible_markup(html) == (left, [])


@given(st.lists(TAGS, max_size=30).map("".join))
def test_no_script_is_left(html: str) -> None:
    left, _ = visible_markup(html)
    assert "<script>" not in left and "<!--" not in left


def test_long_page_is_cut_before_a_tag_with_a_warning() -> None:
    left, warnings = visible_markup("<p>word</p>" * (MAX_MARKUP // 8))
    assert MAX_MARKUP - 10 < len(left) <= MAX_MARKUP
    assert left.endswith(("word", "</p>"))
    assert len(warnings) == 1 and "only the first" in warnings[0]


@pytest.mark.parametrize("piece", ["<script ", "<script></scrip", "<!--", "<style></style", "data:a/a;base64,", "<"])
def test_soup_takes_time_in_proportion(piece: str) -> None:
    assert takes_linear_time(lambda size: visible_markup(piece * (size // len(piece))))


def taken(html: str) -> tuple[list[str], str]:
    """The tables of a page as Markdown, and the text that is left of it."""
    soup = BeautifulSoup(html, "lxml")
    tables, _ = take_tables(soup)
    return [table.markdown for table in tables], " ".join(soup.get_text(" ").split())


def test_a_table_is_taken_out_of_the_text_with_its_caption() -> None:
    table = "<table><caption>Ferries<tr><th>Name<th>Built<tr><td>Heron<td>1843</table>"
    soup = BeautifulSoup(f"<p>Before.</p>{table}<p>After.</p>", "lxml")
    wanted = Table(markdown="| Name | Built |\n| --- | --- |\n| Heron | 1843 |", caption="Ferries")
    assert take_tables(soup) == ([wanted], [])
    assert soup.get_text(" ").split() == ["Before.", "After."]
    assert taken("<table><tr><td> <td>-<tr><td>|<td>&nbsp;</table>") == ([], ""), "empty tables are dropped"


def test_spanning_cells_are_repeated_in_rows_and_columns() -> None:
    [table], _ = taken(
        "<table><tr><th rowspan=2>Name<th colspan=2>Ships<tr><th>Old<th>New<tr><td>Ash<td>1<td>2"
        "<tr><td colspan=3>Whole</table>"
    )
    rows = ["| Name | Ships Old | Ships New |", "| --- | --- | --- |", "| Ash | 1 | 2 |"]
    assert table.splitlines() == [*rows, "| Whole |  |  |"]
    [table], _ = taken('<table><tr><td colspan="99999999">a<td rowspan="x">b<tr><td colspan=-1>c<td>d</table>')
    assert [line.count("|") for line in table.splitlines()] == [3, 3, 3]
    [wide], _ = taken("<table><tr><td>x<td colspan=9999 rowspan=9999>a<tr><td>y</table>")
    assert wide.splitlines() == ["| x | a |", "| --- | --- |", "| y | a |"]


def test_tables_for_the_layout_stay_text() -> None:
    prose = "The weir house has stood beside the river since the flood. " * 20
    for html in (
        f"<table><tr><td>{prose}</td><td>Menu</td></tr><tr><td>x</td><td>y</td></tr></table>",
        f"<table><tr><td>{prose}</td></tr></table>",
        f"<table role=presentation><tr><td>{prose}<td>b<tr><td>c<td>d</table>",
    ):
        tables, text = taken(html)
        assert tables == []
        assert text.startswith(prose.strip())


def test_of_nested_tables_the_innermost_is_the_one_with_data() -> None:
    inner = "<table><tr><td>Heron<td>1843<tr><td>Swift<td>1850</table>"
    html = inner
    for depth in range(50):
        html = f"<table><tr><td>level {depth}<td>{html}</table>"
    tables, text = taken(html)
    assert len(tables) == 1
    assert "| Swift | 1850 |" in tables[0]
    assert all(f"level {depth}" in text for depth in range(50))


def test_a_place_in_a_table_is_a_cell() -> None:
    table = "| Name | Built |\n| --- | --- |\n| Heron \\| Co | 1843 |\n| Swift | 1850 |"
    names = {"1843": "row 1, column Built", "Co": "row 1, column Name", "Swift": "row 2, column Name"}
    names |= {"Name": "header, column Name"}
    assert {text: cell_name(table, table.index(text)) for text in names} == names
