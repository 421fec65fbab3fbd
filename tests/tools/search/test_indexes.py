"""The keyword index and the entity graph are synchronized by the same methods."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_collection import passage

from sleuth.tools.errors import StoreError
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex

FERRY = passage("ferry", "Grey Sister", "The ferry goes to Port Lethany and to Averil Quay.")
TOWN = passage("town", "Port Lethany", "A town with a quay.")
Open = Callable[[], KeywordIndex | GraphIndex]


@pytest.fixture(params=[KeywordIndex, GraphIndex])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Open the index; a new one has two passages and has applied change 7."""
    request.param(tmp_path / "index").apply(upsert=[FERRY, TOWN], delete=[])
    request.param(tmp_path / "index").set_applied(7)
    return lambda: request.param(tmp_path / "index")


def found(index: KeywordIndex | GraphIndex) -> list[str]:
    """Return the passages that contain the name Averil Quay."""
    if isinstance(index, KeywordIndex):
        return [id_ for id_, _ in index.search("averil", 10)]
    return index.mentioning(["averil quay"], at_most=9).get("averil quay", [])


def test_second_index_on_the_same_files_sees_changes(opening: Open) -> None:
    index, other = opening(), opening()
    index.set_reached(9)
    index.apply(upsert=[], delete=["ferry"])
    other.refresh()
    assert (other.applied(), other.reached(), other.ids(), found(other)) == (7, 9, {"town"}, [])


def test_cleared_index_is_empty_and_at_the_start(opening: Open) -> None:
    index = opening()
    index.clear()
    assert (index.count(), index.applied(), index.reached(), index.ids(), found(index)) == (0, 0, 0, set(), [])


def test_file_in_the_way_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database" * 500)
    for kind in (KeywordIndex, GraphIndex):
        with pytest.raises(StoreError, match=r"cannot be opened.*delete that (file|folder) to rebuild it"):
            kind(tmp_path / "file")


def test_changes_may_be_repeated(opening: Open) -> None:
    index = opening()
    index.apply(upsert=[FERRY], delete=["never there"])
    assert (index.count(), found(index), index.applied(), index.reached()) == (2, ["ferry"], 7, 7)
    for _ in range(2):
        index.apply(upsert=[], delete=["ferry", "never there"])
        assert (index.ids(), found(index)) == ({"town"}, [])
