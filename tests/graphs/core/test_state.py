"""The reducers of growing state: history replays writes in larger batches than they were made in."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.graphs.core.state import append_new, merge_keys

WRITES = st.lists(st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(0, 3)), max_size=6)
LINES = st.lists(st.lists(st.sampled_from("abcd")), max_size=6)


@given(first=WRITES, then=WRITES)
def test_merge_keys_in_one_or_many_writes_keeps_order(
    first: list[dict[str, int | None]], then: list[dict[str, int | None]]
) -> None:
    at_once, bit_by_bit = merge_keys({}, first + then), merge_keys(merge_keys({}, first), then)
    assert list(at_once.items()) == list(bit_by_bit.items())
    assert None not in at_once.values()


def test_merge_keys_readds_removed_key_at_the_end() -> None:
    assert list(merge_keys({"a": 1, "b": 2}, [{"a": None}, {"a": 3}])) == ["b", "a"]


@given(first=LINES, then=LINES)
def test_append_new_in_one_or_many_writes_is_equal(first: list[list[str]], then: list[list[str]]) -> None:
    assert append_new([], first + then) == append_new(append_new([], first), then)
