import pytest

from sleuth.tools.errors import UsageError
from sleuth.tools.storage.id_prefix import complete_id, shorten_ids

IDS = ["a3f9", "a3f9.1.6c2e", "a3f9.2.77ab", "a370", "b0", "b0c"]


@pytest.mark.parametrize(
    ("prefix", "found"),
    [("a3f", "a3f9"), ("a3f9", "a3f9"), ("a3f9.2", "a3f9.2.77ab"), ("b0", "b0"), ("b0c", "b0c"), ("c", None)],
)
def test_complete_id_unique_prefix_or_whole_id_is_found(prefix: str, found: str | None) -> None:
    assert complete_id("thread", prefix, IDS) == found


def test_shortened_ids_are_unique_beginnings() -> None:
    ids = ["1f1e925f-f906-6585", "1f1e925f-f60a-6e44", "1f1e925f-f60b", "22aa", "33bbccddee"]
    shown = shorten_ids(ids)
    assert list(shown.values()) == ["1f1e925f-f60a", "1f1e925f-f60b", "1f1e925f-f9", "22aa", "33bbccdd"]
    assert [complete_id("checkpoint", short, ids) for short in shown.values()] == list(shown)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("a3", "Several threads begin with 'a3': a370, a3f9[.]"),
        ("b", "Several threads begin with 'b': b0, b0c[.]"),
        ("x", r"x0, x1, x2, x3, x4, …\. Give more"),
        ("", "id of the thread is empty"),
    ],
)
def test_complete_id_of_several_or_none_is_refused(prefix: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        complete_id("thread", prefix, [*IDS, *(f"x{at}" for at in range(9))])
