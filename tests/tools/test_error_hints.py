"""Suggestions for unknown names."""

import pytest

from sleuth.tools.errors import UnknownName

METHODS = ["par-rag", "plain-rag", "retro-rag", "auto", "search-trained"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("par-rg", "par-rag"), ("plan-rag", "plain-rag"), ("retrorag", "retro-rag"), ("serch-trained", "search-trained")],
)
def test_unknown_name_suggests_a_near_name(name: str, near: str) -> None:
    assert f"Did you mean {near}?" in str(UnknownName("method", name, METHODS))


@pytest.mark.parametrize(("name", "known"), [("third-run", ["toc", "first"]), ("doctor", ["toc"]), ("x", METHODS)])
def test_unknown_name_suggests_nothing_far(name: str, known: list[str]) -> None:
    assert "Did you mean" not in str(UnknownName("run", name, known))
