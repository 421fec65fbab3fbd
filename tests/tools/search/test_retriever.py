"""Queries: the text that is searched is bounded."""

import pytest

from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import MAX_QUERY_CHARS, Query


@pytest.mark.parametrize("text", ["Ada~2 " * 3_333, "word " * 5_000, "+a -b " * 3_000, "長崎" * 10_000, "x" * 20_000])
def test_long_query_is_shortened_to_whole_words(text: str) -> None:
    searched = Query(text=text).checked().text
    assert MAX_QUERY_CHARS - 6 < len(searched) <= MAX_QUERY_CHARS
    assert text.startswith(searched)
    assert " " not in text or text[len(searched)] == " "


def test_query_within_the_limit_is_searched_whole() -> None:
    query = Query(text="a " * (MAX_QUERY_CHARS // 2), k=3, mode="graph")
    assert query.checked() is query


@pytest.mark.parametrize("text", ["", " \n ", "a\ud800"])
def test_empty_query_or_invalid_unicode_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Query(text=text).checked()
