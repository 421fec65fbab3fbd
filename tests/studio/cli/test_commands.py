"""Commands that need neither a model nor documents."""

import json

import pytest
from typer.testing import CliRunner

from sleuth.graphs.registry import METHODS
from sleuth.studio.cli.app import app
from sleuth.studio.cli.commands.methods import methods
from sleuth.studio.cli.commands.runs import runs_app
from sleuth.studio.console.notices import warn_of_demo, warn_of_size
from sleuth.tools.errors import UsageError


def test_help_text_keeps_its_brackets() -> None:
    shown = CliRunner().invoke(app, ["survey", "--help"]).output
    assert "[[columns]] with name, question, kind" in " ".join(shown.split())


def test_fork_invalid_json_is_refused() -> None:
    result = CliRunner().invoke(runs_app, ["fork", "first", "--at", "1f0", "--state", "notes={" + "x" * 500])
    assert isinstance(result.exception, UsageError)
    assert "--state takes FIELD=JSON" in str(result.exception)
    assert len(str(result.exception)) < 500


@pytest.mark.parametrize("as_json", [True, False])
def test_methods_shows_typical_calls_and_baselines(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    methods(as_json=as_json)
    printed = capsys.readouterr().out
    assert METHODS["par-rag"].calls
    assert all(METHODS[name].calls in printed for name in METHODS)
    assert "closed-book: answer from the model's own knowledge, without searching (baseline)" in printed or as_json
    if as_json:
        assert [method["typical_calls"] for method in json.loads(printed)] == [each.calls for each in METHODS.values()]
        baselines = {method["name"] for method in json.loads(printed) if method["baseline"]}
        assert baselines == {name for name, method in METHODS.items() if method.baseline}


@pytest.mark.parametrize(("model", "lines"), [("tiny", 1), ("small", 1), ("qwen3:4b", 0), ("", 0)])
def test_ask_calls_the_embedded_model_a_demo(model: str, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_demo(model)
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", lines)
    assert ("demo model" in printed.err and "sleuth init" in printed.err) is bool(lines)


@pytest.mark.parametrize(
    ("model", "is_small"),
    [
        *(("tiny", True), ("small", True), ("medium", True), ("qwen3:1.7b", True), ("SmolLM2-360M-Instruct", True)),
        *(("qwen3:4b", False), ("Qwen3-30B-A3B", False), ("gpt-5", False), ("phi-3.5-mini-3.8b", False), ("", False)),
    ],
)
def test_small_model_is_named_for_a_survey(model: str, is_small: bool, capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_size(model, "a survey")
    printed = capsys.readouterr()
    assert (printed.out, f"{model} (" in printed.err, "too small for a survey" in printed.err) == ("", *[is_small] * 2)
