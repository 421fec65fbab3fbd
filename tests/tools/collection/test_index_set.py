from collections.abc import Sequence
from pathlib import Path

import pytest
from entries import entry

from sleuth.tools.collection.index_set import catch_up, repair
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.types import Passage


class Shelf(KeywordIndex):
    """An index that records what it is given; `breaks_at` is the number of the call that fails."""

    name = "shelf"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.upserts: list[str] = []
        self.breaks_at: int | None = None
        self.calls = 0

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        self.calls += 1
        if self.calls == self.breaks_at:
            raise ConnectionError
        self.upserts += [passage.id for passage in upsert]
        super().apply(upsert=upsert, delete=delete)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


def ignore(_passages: int) -> None: ...


def test_index_follows_puts_updates_and_deletes(catalogue: Catalogue, shelf: Shelf) -> None:
    catalogue.put_documents([entry("a", "x", "y"), entry("b", "z")])
    catch_up(catalogue, shelf, on_indexed=ignore)
    catalogue.put_documents([entry("a", "y", "w")])
    catalogue.delete_documents(["b"])
    shelf.upserts.clear()
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert shelf.ids() == catalogue.passage_ids()
    assert shelf.upserts == [entry("a", "w").passages[0].id]  # what stayed is not embedded again
    assert shelf.applied() == catalogue.head()
    catalogue.put_documents([entry("never indexed", "x")])
    catalogue.delete_documents(["never indexed"])
    shelf.upserts.clear()
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert (shelf.upserts, shelf.applied()) == ([], catalogue.head())


def test_extraction_interrupted_anywhere_ends_the_same(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.put_documents([entry(f"d{number}", f"text {number}") for number in range(700)])
    for breaks_at in (1, 2, 3):
        shelf = Shelf(tmp_path / str(breaks_at))
        shelf.breaks_at = breaks_at
        with pytest.raises(ConnectionError):
            catch_up(catalogue, shelf, on_indexed=ignore)
        indexed: list[int] = []
        catch_up(catalogue, shelf, on_indexed=indexed.append)
        assert shelf.ids() == catalogue.passage_ids()
        assert sum(indexed) == (
            700 if breaks_at < 3 else 700 - 512
        )  # only finished pages of the journal are not redone


def test_repair_adds_missing_and_deletes_extra_passages(catalogue: Catalogue, shelf: Shelf) -> None:
    catalogue.put_documents([entry("a", "x", "y", "z")])
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert repair(catalogue, shelf, on_indexed=ignore) is None
    shelf.apply(upsert=entry("stranger", "?").passages, delete=sorted(shelf.ids())[:2])
    note = repair(catalogue, shelf, on_indexed=ignore)
    assert note == "shelf: 2 passages were missing and 1 left over; repaired."
    catalogue.put_documents([entry("b", "y")])  # an ingest reads its next batch meanwhile
    assert repair(catalogue, shelf, on_indexed=ignore) is None
    assert (shelf.ids(), shelf.applied()) == (catalogue.passage_ids(), catalogue.head())
