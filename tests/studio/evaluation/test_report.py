import json
from pathlib import Path
from xml.etree import ElementTree

from sleuth.studio.evaluation.data import GoldQuestion, systems
from sleuth.studio.evaluation.report import cell, difference_table, write_report
from sleuth.studio.evaluation.results import Result, methods_result

MARKUP = "<script>a|b</script> ![x](http://a.example/x.png) [y](http://a.example/) *z* &amp;"


def test_page_shows_texts_without_their_markup(tmp_path: Path) -> None:
    """Questions, answers and system names are text: the page has no script, link or picture of theirs."""
    question = GoldQuestion(set="s", id="q", question=MARKUP, answers=("cat",))
    run = Result(thread="t", system="plain-rag", question="s/q", status="answered", text=MARKUP).scored(question)
    collection = {"name": "<b>", "documents": 1, "passages": 1, "sha256": "2"}
    data = {"files": [{"set": "s", "questions": 1, "sha256": "1"}], "collection": collection}
    report = {"questions": 1, "data": data, "warnings": [MARKUP], "models": {"default": "m"}}
    report |= {"command": "sleuth eval 'a < b'", "seed": 0, "versions": {}}
    report |= {"title": "simulation", "notice": "Simulation: no language model answered."}
    report["methods"] = methods_result(systems(["plain-rag"]), [question], [run], ended="", seed=0)
    write_report(tmp_path, report)
    html = (tmp_path / "report.html").read_text()
    body = ElementTree.fromstring(html[html.index("<body>") : html.index("</html>")])
    assert not {"script", "img", "a", "em", "b"} & {each.tag for each in body.iter()}
    assert [cell.text for cell in [*body.iter("table")][-1].iter("td")][1:4] == [MARKUP, "cat", MARKUP]
    assert "<h1>Evaluation (simulation)</h1>" in html
    notes = [each.text for each in body.findall("blockquote/p")]
    assert notes == ["Simulation: no language model answered.", f"Note: {MARKUP}"]
    assert next(each.text for each in body.iter("code")) == "sleuth eval 'a < b'\n"
    assert json.loads((tmp_path / "report.json").read_text())["methods"]["runs"] == 1


def test_numbers_are_shown_with_their_intervals() -> None:
    assert cell("f1", {"mean": 0.5, "low": 0.25, "high": 1.0, "n": 4}) == "50.0 (25.0 to 100.0)"
    assert cell("tokens", {"mean": 1234.5, "low": 1000.0, "high": 2000.0, "n": 4}) == "1,234 (1,000 to 2,000)"
    assert cell("f1", {"mean": None, "low": None, "high": None, "n": 0}) == "–"


def test_a_difference_in_tokens_is_not_in_points() -> None:
    found = {"a": "x", "b": "y", "mean": -2.0, "low": -3.0, "high": -1.0, "p": 0.01, "n": 9, "detectable": 0.5}
    shown = [difference_table([{**found, "metric": metric, "needed": 8}])[1] for metric in ("tokens", "f1")]  # type: ignore[typeddict-item]
    assert shown[0] == ["x − y", "tokens", "-2.00 (-3.00 to -1.00)", "0.0100", "9", "0.5", "8"]
    assert shown[1][2] == "-200.0 (-300.0 to -100.0)"
