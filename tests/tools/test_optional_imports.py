import pytest

from sleuth.tools.errors import MissingExtra
from sleuth.tools.optional_imports import extra


def test_missing_package_is_named_with_its_extra() -> None:
    told = r"^Flying needs no_such_wings: pip install 'sleuth-rag\[air\]'\.$"
    with pytest.raises(MissingExtra, match=told), extra("air", "Flying"):
        import no_such_wings  # type: ignore[import-not-found]  # noqa: F401


def test_other_errors_are_let_through() -> None:
    with pytest.raises(ZeroDivisionError), extra("air", "Flying"):
        1 / 0  # noqa: B018
