from bs4 import BeautifulSoup

from sleuth.tools.sources.web_pages.page import Table, cell_name, take_tables


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
    rows = ["| Name | Ships | Ships |", "| --- | --- | --- |", "| Name | Old | New |", "| Ash | 1 | 2 |"]
    assert table.splitlines() == [*rows, "| Whole |  |  |"]
    [table], _ = taken('<table><tr><td colspan="99999999">a<td rowspan="x">b<tr><td colspan=-1>c<td>d</table>')
    assert [line.count("|") for line in table.splitlines()] == [3, 3, 3]
    [wide], _ = taken("<table><tr><td>x<td colspan=9999 rowspan=9999>a<tr><td>y</table>")
    assert max(line.count("|") for line in wide.splitlines()) == 65


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
