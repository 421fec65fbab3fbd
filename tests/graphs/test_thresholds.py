"""What was fitted for a model is found again for it, and for no other."""

from pathlib import Path

import pytest

from sleuth.graphs.answer import Threshold
from sleuth.graphs.thresholds import FILE, fitted, keep
from sleuth.tools.errors import StoreError


def test_each_model_has_its_own(tmp_path: Path) -> None:
    assert fitted(tmp_path, "small") is None
    small, large = Threshold(value=1.5, by="fitted on ä"), Threshold(value=2.5, by="fitted on b")
    keep(tmp_path, "small", small)
    keep(tmp_path, "large", large)
    assert (fitted(tmp_path, "small"), fitted(tmp_path, "large"), fitted(tmp_path, "other")) == (small, large, None)
    keep(tmp_path, "small", large)
    assert fitted(tmp_path, "small") == large


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"value": "x", "by": ""}}', '{"a": {"by": ""}}'])
def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreError, match="Remove it, and fit again"):
        fitted(tmp_path, "small")
