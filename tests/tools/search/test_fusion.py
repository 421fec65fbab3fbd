import pytest

from sleuth.tools.search.retriever import fetch_depth, fuse


def test_what_both_lists_rank_well_comes_first() -> None:
    fused = fuse([[("a", 9.0), ("b", 8.0)], [("b", 0.9), ("c", 0.8)]])
    assert [id_ for id_, _ in fused] == ["b", "a", "c"]
    assert fused[0][1] == pytest.approx(1 / 4 + 1 / 3)


def test_equal_sums_have_an_order() -> None:
    assert fuse([[("b", 1.0)], [("a", 1.0)]]) == fuse([[("a", 1.0)], [("b", 1.0)]])


def test_one_list_keeps_its_order() -> None:
    assert [id_ for id_, _ in fuse([[("z", 0.1), ("a", 0.1)], []])] == ["z", "a"]


@pytest.mark.parametrize("k", [1, 5, 500])
def test_lists_are_fetched_deeper_than_asked(k: int) -> None:
    assert fetch_depth(k) > k
