"""Fitted thresholds are stored by model and prompt."""

from pathlib import Path

import pytest

from sleuth.agents.roles.judging import CONSISTENCY, VERIFY
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.thresholds import FILE, fitted_thresholds, store_threshold
from sleuth.tools.errors import StoreError

A, B = Threshold(value=1.5, by="fitted on ä"), Threshold(value=2.5, by="fitted on b")


def test_thresholds_are_kept_by_model_and_prompt(tmp_path: Path) -> None:
    assert fitted_thresholds([tmp_path], lambda _: "small") == {}
    store_threshold(tmp_path, "small", VERIFY.prompt, A)
    store_threshold(tmp_path, "large", VERIFY.prompt, B)
    store_threshold(tmp_path, "small", CONSISTENCY.prompt, B)
    assert fitted_thresholds([tmp_path], lambda _: "small") == {VERIFY.prompt: A, CONSISTENCY.prompt: B}
    assert fitted_thresholds([tmp_path], lambda _: "large") == {VERIFY.prompt: B}
    assert fitted_thresholds([tmp_path], lambda _: "other") == {}
    by_role = {"verifier": "large", "evaluator": "small", "default": "small"}
    assert fitted_thresholds([tmp_path], by_role.__getitem__) == {VERIFY.prompt: B, CONSISTENCY.prompt: B}
    store_threshold(tmp_path, "small", VERIFY.prompt, B)
    assert fitted_thresholds([tmp_path], lambda _: "small")[VERIFY.prompt] == B


def test_thresholds_of_home_precede_shipped_ones(tmp_path: Path) -> None:
    here, packaged = tmp_path / "here", tmp_path / "packaged"
    for folder in (here, packaged):
        folder.mkdir()
    store_threshold(packaged, "small", VERIFY.prompt, A)
    store_threshold(packaged, "small", CONSISTENCY.prompt, A)
    store_threshold(here, "small", VERIFY.prompt, B)
    assert fitted_thresholds([here, packaged], lambda _: "small") == {VERIFY.prompt: B, CONSISTENCY.prompt: A}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"value": "x", "by": ""}}', '{"a": {"by": ""}}'])
def test_thresholds_in_damaged_file_raise_with_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreError, match="Remove it, and fit again"):
        fitted_thresholds([tmp_path], lambda _: "small")
