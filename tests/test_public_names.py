"""The public names of the package."""

from inspect import isfunction

import pytest

import sleuth


def test_public_functions_are_those_that_open_what_they_need() -> None:
    public = {name: getattr(sleuth, name) for name in sleuth.__all__}
    assert {name for name, value in public.items() if isfunction(value)} == {
        "ask",
        "ingest",
        "open",
        "search",
        "stream",
    }
    assert {"Answer", "METHODS", "Settings", "Sleuth", "SleuthError", "sync"} < public.keys()
    assert dir(sleuth) == sleuth.__all__
    with pytest.raises(AttributeError, match="no attribute 'resume'"):
        _ = sleuth.resume  # type: ignore[attr-defined]
