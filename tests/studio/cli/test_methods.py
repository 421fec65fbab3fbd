"""`sleuth methods`: what it says about each."""

import json

import pytest

from sleuth.graphs.registry import METHODS
from sleuth.studio.cli.commands.methods import methods


@pytest.mark.parametrize("as_json", [True, False])
def test_each_method_says_how_many_calls_are_typical(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    methods(as_json=as_json)
    printed = capsys.readouterr().out
    assert all(METHODS[name].calls in printed for name in METHODS)
    assert METHODS["par-rag"].calls
    assert "closed-book: answer from the model's own knowledge, without searching (baseline)" in printed or as_json
    if as_json:
        assert [method["typical_calls"] for method in json.loads(printed)] == [each.calls for each in METHODS.values()]
        baselines = {method["name"] for method in json.loads(printed) if method["baseline"]}
        assert baselines == {each.name for each in METHODS.values() if each.baseline}
