from xml.etree import ElementTree

from sleuth.studio.evaluation.report import cell, difference_table
from sleuth.studio.evaluation.reporting import (
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
    align_columns,
    pareto_front,
    to_html,
    to_markdown,
)

BLOCKS = [
    Heading(1, "Evaluation <1>"),
    Paragraph("All of it is simulated.", label=True),
    Table([["system", "F1"], ["a|b", "<50>"]]),
    Code("sleuth eval 'a b'"),
    Picture("<svg/>", "A & B"),
]


def test_markdown() -> None:
    assert to_markdown(BLOCKS) == (
        "# Evaluation <1>\n\n**All of it is simulated.**\n\n| system | F1 |\n| --- | --- |\n| a\\|b | <50> |\n\n"
        "```sh\nsleuth eval 'a b'\n```\n"
    )


def test_html_is_whole_and_escapes_what_people_wrote() -> None:
    page = to_html(BLOCKS)
    assert "<h1>Evaluation &lt;1&gt;</h1>" in page
    assert "<td>&lt;50&gt;</td>" in page
    assert '<p class="label">All of it is simulated.</p>' in page
    assert "<figure><svg/><figcaption>A &amp; B</figcaption></figure>" in page
    assert "http" not in page.replace("charset", "")
    body = page[page.index("<body>") : page.index("</html>")]
    assert ElementTree.fromstring(body).tag == "body"


def test_a_table_for_a_terminal() -> None:
    assert align_columns([["mode", "R"], ["keyword", "1.5"]]) == "mode       R\nkeyword  1.5"
    assert align_columns([["a"]]) == "a"


def test_numbers_are_shown_with_their_intervals() -> None:
    assert cell("f1", {"mean": 0.5, "low": 0.25, "high": 1.0, "n": 4}) == "50.0 (25.0 to 100.0)"
    assert cell("tokens", {"mean": 1234.5, "low": 1000.0, "high": 2000.0, "n": 4}) == "1,234 (1,000 to 2,000)"
    assert cell("f1", {"mean": None, "low": None, "high": None, "n": 0}) == "–"


def test_a_difference_in_tokens_is_not_in_points() -> None:
    found = {"a": "x", "b": "y", "mean": -2.0, "low": -3.0, "high": -1.0, "p": 0.01, "n": 9, "detectable": 0.5}
    shown = [difference_table([{**found, "metric": metric, "needed": 8}])[1] for metric in ("tokens", "f1")]  # type: ignore[typeddict-item]
    assert shown[0] == ["x − y", "tokens", "-2.00 (-3.00 to -1.00)", "0.0100", "9", "0.5", "8"]
    assert shown[1][2] == "-200.0 (-300.0 to -100.0)"


def test_the_front_leaves_out_what_is_dearer_and_no_better() -> None:
    assert pareto_front([(3, 50), (1, 20), (2, 60), (4, 60), (5, 70), (1, 10)]) == [(1, 20), (2, 60), (5, 70)]
    assert pareto_front([]) == []
