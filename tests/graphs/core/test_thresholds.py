"""What was fitted for a model is found again for it, and for no other."""

from pathlib import Path

import pytest

from sleuth.agents.roles.judging import CONSISTENCY, VERIFY
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.thresholds import FILE, chosen, fitted, keep
from sleuth.tools.errors import StoreError

A, B = Threshold(value=1.5, by="fitted on ä"), Threshold(value=2.5, by="fitted on b")


def test_each_model_has_its_own_for_each_prompt(tmp_path: Path) -> None:
    assert fitted([tmp_path], lambda _: "small") == {}
    keep(tmp_path, "small", VERIFY.prompt, A)
    keep(tmp_path, "large", VERIFY.prompt, B)
    keep(tmp_path, "small", CONSISTENCY.prompt, B)
    assert fitted([tmp_path], lambda _: "small") == {VERIFY.prompt: A, CONSISTENCY.prompt: B}
    assert fitted([tmp_path], lambda _: "large") == {VERIFY.prompt: B}
    assert fitted([tmp_path], lambda _: "other") == {}
    by_role = {"verifier": "large", "evaluator": "small"}
    assert fitted([tmp_path], by_role.__getitem__) == {VERIFY.prompt: B, CONSISTENCY.prompt: B}
    keep(tmp_path, "small", VERIFY.prompt, B)
    assert fitted([tmp_path], lambda _: "small")[VERIFY.prompt] == B


def test_what_was_fitted_here_goes_before_what_comes_with_the_model(tmp_path: Path) -> None:
    here, packaged = tmp_path / "here", tmp_path / "packaged"
    for folder in (here, packaged):
        folder.mkdir()
    keep(packaged, "small", VERIFY.prompt, A)
    keep(packaged, "small", CONSISTENCY.prompt, A)
    keep(here, "small", VERIFY.prompt, B)
    assert fitted([here, packaged], lambda _: "small") == {VERIFY.prompt: B, CONSISTENCY.prompt: A}


@pytest.mark.parametrize(
    ("given", "fitted", "holds"), [(None, None, A), (None, B, B), (0, B, Threshold(value=0, by="as set for this run"))]
)
def test_what_is_set_holds_and_then_what_was_fitted(
    given: float | None, fitted: Threshold | None, holds: Threshold
) -> None:
    assert chosen(given, fitted, A) == holds


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"value": "x", "by": ""}}', '{"a": {"by": ""}}'])
def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreError, match="Remove it, and fit again"):
        fitted([tmp_path], lambda _: "small")
