"""Tables, marks and equations have one form in all formats."""

import pytest
from lxml import etree, html

from sleuth.tools.documents.formats.content import Section
from sleuth.tools.documents.formats.equations import equation
from sleuth.tools.documents.formats.html_format import parse_html, read_html, whole_page
from sleuth.tools.documents.formats.marks import Run, link, raised, struck, written
from sleuth.tools.documents.formats.tables import MAX_REPEATED, MAX_SPAN, Cells, Span, grid

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
LONG = "word " * MAX_REPEATED


@pytest.mark.parametrize(
    ("rows", "placed"),
    [
        ([[Span("a", rows=2), "b"], ["c"]], [["a", "b"], ["a", "c"]]),
        ([["k", "v"], ["a", "b"], [Span(None), "c"]], [["k", "v"], ["a", "b"], ["a", "c"]]),
        ([["k", "v"], [Span("all", 2)], ["a", "b"]], [["k", "v"], ["all", ""], ["a", "b"]]),
        ([["k", "v", "w"], ["a", Span("none", 2)]], [["k", "v", "w"], ["a", "none", "none"]]),
        (
            [["Name", Span("Contact", 2)], ["Ada", "555", "a@x"]],
            [["Name", "Contact", "Contact"], ["Ada", "555", "a@x"]],
        ),
        (
            [["", Span("2024", 2)], ["boat", "Q1", "Q2"], ["H", "1", "2"]],
            [["boat", "2024 Q1", "2024 Q2"], ["H", "1", "2"]],
        ),
        ([[Span("Title", 2)], ["k", "v"], ["a", "b"]], [["Title", ""], ["k", "v"], ["a", "b"]]),
        ([[Span("a", 1000), "b"], ["c", "d"]], [["a", "a", "b"], ["c", "d", ""]]),
        ([["k", "v"], [Span(LONG, rows=2), "b"], ["c"]], [["k", "v"], [LONG.strip(), "b"], ["", "c"]]),
        ([["k", "v"], [Span("a", rows=3), "b"], [], ["c"]], [["k", "v"], ["a", "b"], ["a", "c"]]),
    ],
)
def test_spanning_cell_is_in_each_row_and_column(rows: list[Cells], placed: list[list[str]]) -> None:
    assert [cells for _, cells in grid(enumerate(rows))] == placed


def test_declared_header_rows_are_joined() -> None:
    rows: list[Cells] = [["boat", "fee"], ["name", "euro"], ["Heron", "2"]]
    assert grid(enumerate(rows, start=1), headers=2) == [(2, ["boat name", "fee euro"]), (3, ["Heron", "2"])]


def test_cells_that_extend_to_further_rows_do_not_add_up() -> None:
    rows: list[Cells] = [[Span(f"{row} {column}", rows=60_000) for column in range(300)] for row in range(12)]
    assert len(grid(enumerate(rows))[-1][1]) == MAX_SPAN + 300


LINKS = {
    ("form", "https://x.org/f 7"): "[form](https://x.org/f%207)",
    (" form\n", "mailto:a@x.org"): " [form](mailto:a@x.org)\n",
    ("form", "files/f7.pdf?v=1"): "[form](files/f7.pdf?v=1)",
    **{("x", address): "x" for address in ("#note", "", "next.html", "wiki/Page", "javascript:go()", "a.png")},
    ("x.org/f7", "https://x.org/f7/"): "x.org/f7",
    ("a@x.org", "mailto:a@x.org"): "a@x.org",
    ("", "https://x.org"): "",
}


def test_link_has_its_address_if_it_leads_elsewhere() -> None:
    assert {given: link(*given) for given in LINKS} == LINKS


RAISED = {
    ("6", "10"): "⁶", ("−3", "10"): "⁻³", ("n", "2"): "ⁿ", ("x", "e"): "^x", ("a+b", "2"): "^(a+b)",
    ("2", "The mill"): "[2]", ("2", "in 1843."): "[2]", ("3", "m"): "³", ("st", "1"): "st", ("[1]", "mill"): "[1]",
}  # fmt: skip


def test_raised_text_is_a_power_a_note_or_an_ordinal() -> None:
    assert {given: raised(*given) for given in RAISED} == RAISED


def test_adjacent_runs_with_the_same_marks_are_one() -> None:
    runs = [
        Run("7", struck=True),
        Run("50", struck=True),
        Run(" 820 "),
        Run("no", hidden=True),
        Run("m"),
        Run("2", True),
    ]
    assert written(runs) == "~~750~~ 820 m²"
    assert struck(" – ") == " – "


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<nary><naryPr><chr val='∑'/></naryPr><sub>{i=1}</sub><sup>{n}</sup><e>{i}</e></nary>", "∑_(i = 1)ⁿ i"),
        ("<d><e>{a+b}</e></d>{-}<func><fName>{sin}</fName><e>{x}</e></func>", "(a + b) - sin x"),
        ("<d><dPr><begChr val='['/><endChr val=']'/></dPr><e><m><mr><e>{1}</e><e>{2}</e></mr></m></e></d>", "[1, 2]"),
        ("<rad><deg>{3}</deg><e>{y}</e></rad><acc><accPr><chr val='̅'/></accPr><e>{x}</e></acc>", "³√yx̅"),
        ("<f><num>{1}</num><den>{n+1}</den></f>{x}", "(1 / (n + 1))x"),
    ],
)
def test_equation_of_office_is_linear_text(xml: str, text: str) -> None:
    runs = xml.replace("{", "<r><t>").replace("}", "</t></r>")
    assert equation(etree.fromstring(f"<oMath xmlns='{MATH}'>{runs}</oMath>")) == text


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder><mi>y</mi>", "lim_(x → 0) y"),
        ("<msub><mi>x</mi><mn>1</mn></msub><mo>&lt;</mo><mo>-</mo><mi>sin</mi><mi>y</mi>", "x₁ < -sin y"),
        ("<semantics><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation>\\frac ab</annotation></semantics>", "a / b"),
        ("<mfenced open='[' close=']'><mi>a</mi><mi>b</mi></mfenced><mtext>if non-zero</mtext>", "[a, b]if non-zero"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>", "[1, 2]"),
        ("E = m", "E = m"),
    ],
)
def test_equation_of_a_page_is_linear_text(xml: str, text: str) -> None:
    assert equation(html.fragment_fromstring(f"<math>{xml}</math>")) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>one<br>two\nthree</p>", "one\ntwo three"),
        ("<select><option>A<option>B</select>", "A\n\nB"),
        ("<ol><li>one<li>two</ol>", "1. one\n2. two"),
        ("<p>Ada<sup><a href='#n'>1</a></sup>, H<sub>2</sub>O", "Ada[1], H2O"),
        ("<a href='https://x.org/a'><h3>Fees</h3><p>of boats</a>", "### [Fees](https://x.org/a)\n\nof boats"),
        ("<a href='https://x.org/a'><img alt='Map'></a>", "[Map](https://x.org/a)"),
        ("<pre>a  |\n  b</pre>", "a  |\n  b"),
        ("<table><tr><td rowspan=0>a<td>b<tr><td>c</table>", "| a | b |\n| --- | --- |\n| a | c |"),
        ("<ruby>漢<rt>kan</ruby>", "漢(kan)"),
        ("<s>750<del> euro</del></s>", "~~750~~ ~~euro~~"),
    ],
)
def test_marks_of_a_page_are_text(body: str, text: str) -> None:
    assert whole_page(parse_html(f"<body>{body}</body>")) == text


def test_page_in_a_form_keeps_its_table() -> None:
    table = "<table><tr><th>Day<th>Hours<tr><td>Monday<td>9-17</table>"
    (section,) = read_html(f"<form><h1>Museum</h1><p>It opens every day at nine.</p>{table}</form>".encode()).sections
    assert isinstance(section, Section) and section.text.endswith("| Day | Hours |\n| --- | --- |\n| Monday | 9-17 |")
