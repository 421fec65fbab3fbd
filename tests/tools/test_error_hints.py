"""Suggestions for unknown names, and missing packages named with their extra."""

from importlib import import_module

import pytest

from sleuth.tools.errors import MissingExtra, MissingPart, UnknownName, extra, needs_part

METHODS = ["par-rag", "plain-rag", "retro-rag", "auto", "search-trained"]
NEAR = {"par-rg": "par-rag", "plan-rag": "plain-rag", "retrorag": "retro-rag", "serch-trained": "search-trained"}


def test_unknown_name_suggests_a_near_name() -> None:
    for name, near in NEAR.items():
        assert f"Did you mean {near}?" in str(UnknownName("method", name, METHODS))
    for name, known in (("third-run", ["toc", "first"]), ("doctor", ["toc"]), ("x", METHODS)):
        assert "Did you mean" not in str(UnknownName("run", name, known))


def test_missing_package_is_named_with_its_extra() -> None:
    told = r"^Flying needs no_such_wings: pip install 'sleuth-rag\[air\]'\.$"
    with pytest.raises(MissingExtra, match=told), extra("air", "Flying"):
        import no_such_wings  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ZeroDivisionError), extra("air", "Flying"):
        1 / 0  # noqa: B018


def test_missing_part_is_named() -> None:
    with (
        pytest.raises(MissingPart, match=r"needs the part server, and sleuth\.studio\.no_such_part is missing"),
        needs_part("server", "sleuth serve"),
    ):
        import_module("sleuth.studio.no_such_part")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needs_part("server", "sleuth serve"):
        import_module("no_such_package")
