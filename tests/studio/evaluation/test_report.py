from typing import Any
from xml.etree import ElementTree

from sleuth.studio.evaluation.report import cell, difference_table, verdict
from sleuth.studio.evaluation.reporting import Page
from sleuth.studio.evaluation.scoring import Difference, Interval


def page() -> Page:
    made = Page("Evaluation <1>")
    made.label("All of it is simulated.")
    made.table([["system", "F1"], ["a|b", "<50>"]])
    made.code("sleuth eval 'a b'")
    made.picture("A & B", "<svg></svg>")
    made.folded_table("All answers", [["question"], ["Why?"]])
    return made


def test_markdown_has_neither_pictures_nor_folded_tables() -> None:
    assert page().to_markdown() == (
        "# Evaluation <1>\n\n**All of it is simulated.**\n\n| system | F1 |\n| --- | --- |\n| a\\|b | <50> |\n\n"
        "```sh\nsleuth eval 'a b'\n```\n"
    )


def test_html_is_whole_escaped_and_folded() -> None:
    shown = page().to_html()
    assert "<h1>Evaluation &lt;1&gt;</h1>" in shown
    assert "<td>&lt;50&gt;</td>" in shown
    assert '<p class="label">All of it is simulated.</p>' in shown
    assert "<svg></svg><figcaption>A &amp; B</figcaption></figure>" in shown
    assert "<details><summary>All answers</summary>" in shown
    body = shown[shown.index("<body>") : shown.index("</html>")]
    assert ElementTree.fromstring(body).tag == "body"


def interval(mean: float) -> Interval:
    return {"mean": mean, "low": mean, "high": mean, "n": 9}


def compared(a: str, b: str, mean: float, low: float, high: float) -> Difference:
    return {
        **{"a": a, "b": b, "metric": "f1", "mean": mean, "low": low, "high": high},  # type: ignore[typeddict-item]
        **{"p": 0.5, "n": 9, "detectable": 0.5, "needed": 1234},
    }


def test_verdict_names_the_best_and_what_chance_explains() -> None:
    systems = {
        name: {"f1": interval(f1), "calls": interval(2.0), "tokens": interval(tokens)}
        for name, f1, tokens in (
            ("ras", 0.5, 900.0),
            ("agent", 0.5, 800.0),
            ("plain-rag", 0.25, 1.0),
            ("ircot", 0.4, 1.0),
        )
    }
    differences = [
        compared("ras", "agent", 0.0, -0.1, 0.1),
        compared("agent", "plain-rag", 0.25, 0.1, 0.4),
        compared("ircot", "agent", -0.1, -0.3, 0.1),
    ]
    result: Any = {"summary": {"all": {"systems": systems}, "differences": differences}}
    assert verdict(result) == [
        "agent has the highest F1, 50.0 (50.0 to 50.0) percent, for 2.0 calls and 800 tokens per question.",
        "ras: the same F1.",
        "ircot: 10.0 points less F1, which may be chance; about 1,234 questions would show it.",
        "plain-rag: 25.0 points less F1, which chance does not explain.",
    ]
    alone: Any = {"summary": {"all": {"systems": {"ras": systems["ras"]}}, "differences": []}}
    assert verdict(alone) == [
        "ras has an F1 of 50.0 (50.0 to 50.0) percent, for 2.0 calls and 900 tokens per question."
    ]
    assert verdict({"summary": {"all": {"systems": {}}, "differences": []}}) == []  # type: ignore[typeddict-item]


def test_numbers_are_shown_with_their_intervals() -> None:
    assert cell("f1", {"mean": 0.5, "low": 0.25, "high": 1.0, "n": 4}) == "50.0 (25.0 to 100.0)"
    assert cell("tokens", {"mean": 1234.5, "low": 1000.0, "high": 2000.0, "n": 4}) == "1,234 (1,000 to 2,000)"
    assert cell("f1", {"mean": None, "low": None, "high": None, "n": 0}) == "–"


def test_a_difference_in_tokens_is_not_in_points() -> None:
    found = {"a": "x", "b": "y", "mean": -2.0, "low": -3.0, "high": -1.0, "p": 0.01, "n": 9, "detectable": 0.5}
    shown = [difference_table([{**found, "metric": metric, "needed": 8}])[1] for metric in ("tokens", "f1")]  # type: ignore[typeddict-item]
    assert shown[0] == ["x − y", "tokens", "-2.00 (-3.00 to -1.00)", "0.0100", "9", "0.5", "8"]
    assert shown[1][2] == "-200.0 (-300.0 to -100.0)"
