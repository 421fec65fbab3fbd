"""Queries, and the fusion of rankings."""

import pytest

from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import MAX_QUERY_CHARS, Query, fetch_depth, fuse


@pytest.mark.parametrize("text", ["Ada~2 " * 3_333, "word " * 5_000, "+a -b " * 3_000, "長崎" * 10_000, "x" * 20_000])
def test_long_query_is_shortened_to_whole_words(text: str) -> None:
    searched = Query(text=text).checked().text
    assert MAX_QUERY_CHARS - 6 < len(searched) <= MAX_QUERY_CHARS
    assert text.startswith(searched)
    assert " " not in text or text[len(searched)] == " "
    short = Query(text="a " * (MAX_QUERY_CHARS // 2), k=3, mode="graph")
    assert short.checked() is short


@pytest.mark.parametrize("text", ["", " \n ", "a\ud800"])
def test_empty_query_or_invalid_unicode_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Query(text=text).checked()


def test_what_both_lists_rank_well_comes_first() -> None:
    fused = fuse([[("a", 9.0), ("b", 8.0)], [("b", 0.9), ("c", 0.8)]])
    assert [id_ for id_, _ in fused] == ["b", "a", "c"]
    assert fused[0][1] == pytest.approx(1 / 4 + 1 / 3)
    assert fuse([[("b", 1.0)], [("a", 1.0)]]) == fuse([[("a", 1.0)], [("b", 1.0)]])
    assert [id_ for id_, _ in fuse([[("z", 0.1), ("a", 0.1)], []])] == ["z", "a"]
    assert all(fetch_depth(k) > k for k in (1, 5, 500))
