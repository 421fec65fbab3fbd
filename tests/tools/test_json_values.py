"""JSON from outside: what can be stored passes, and the place of any other value is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from sleuth.tools.checked_data import MOST_LEVELS, check_json
from sleuth.tools.errors import UsageError


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("\ud800", "The JSON contains the character NUL or half of a surrogate pair"),
        ({"a": [1, {"b": "x\x00"}]}, "a.1.b contains the character NUL"),
        ({"a": {"\udfff": 1}}, r"a.\udfff contains the character NUL or half"),
        ([2**63], "0 is an integer of more than 64 bits"),
        ({"n": -(2**63) - 1}, "n is an integer of more than 64 bits"),
        ({"n": float("inf")}, "n is not a finite number"),
        (nested(MOST_LEVELS + 2), "nested deeper than 100 levels"),
    ],
)
def test_value_that_cannot_be_stored_is_refused_with_its_place(value: object, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_json(value)
    assert says in str(refused.value)
    assert str(refused.value).encode()


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\ud800", "\x00"])
VALUES = st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@given(VALUES)
def test_value_that_passes_is_written_and_read_again(value: Any) -> None:
    try:
        check_json(value)
    except UsageError:
        return
    assert from_json(to_json(value)) == value


def test_deepest_value_that_passes_is_written_and_read_again() -> None:
    value = nested(MOST_LEVELS + 1)
    check_json(value)
    assert from_json(to_json(value)) == value
