from collections.abc import Sequence

import pytest
from entries import entry

from sleuth.tools.collection.index_set import catch_up, repair
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.types import Passage


class Shelf:
    """In-memory index that records its calls; `breaks_at` is the number of the call that fails."""

    name = "shelf"

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.seq = self.begun = 0
        self.upserts: list[str] = []
        self.breaks_at: int | None = None
        self.calls = 0

    def applied(self) -> int:
        return self.seq

    def set_applied(self, seq: int) -> None:
        self.seq = seq

    def reached(self) -> int:
        return max(self.begun, self.seq)

    def set_reached(self, seq: int) -> None:
        self.begun = seq

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        self.calls += 1
        if self.calls == self.breaks_at:
            raise ConnectionError
        for id_ in delete:
            self.held.pop(id_, None)
        for passage in upsert:
            self.held[passage.id] = passage.text
            self.upserts.append(passage.id)

    def clear(self) -> None:
        self.held, self.seq, self.begun = {}, 0, 0

    def count(self) -> int:
        return len(self.held)

    def ids(self) -> set[str]:
        return set(self.held)


def ignore(_passages: int) -> None: ...


def test_index_follows_puts_updates_and_deletes(catalogue: Catalogue) -> None:
    shelf = Shelf()
    catalogue.put_documents([entry("a", "x", "y"), entry("b", "z")])
    catch_up(catalogue, shelf, on_indexed=ignore)
    catalogue.put_documents([entry("a", "y", "w")])
    catalogue.delete_documents(["b"])
    shelf.upserts.clear()
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert sorted(shelf.held.values()) == ["w", "y"]
    assert shelf.upserts == [entry("a", "w").passages[0].id]  # what stayed is not embedded again
    assert shelf.applied() == catalogue.head()


def test_passage_added_and_deleted_is_never_indexed(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry("a", "x")])
    catalogue.delete_documents(["a"])
    shelf = Shelf()
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert (shelf.upserts, shelf.applied()) == ([], catalogue.head())


def test_extraction_interrupted_anywhere_ends_the_same(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry(f"d{number}", f"text {number}") for number in range(700)])
    for breaks_at in (1, 2, 3):
        shelf = Shelf()
        shelf.breaks_at = breaks_at
        with pytest.raises(ConnectionError):
            catch_up(catalogue, shelf, on_indexed=ignore)
        indexed: list[int] = []
        catch_up(catalogue, shelf, on_indexed=indexed.append)
        assert shelf.ids() == catalogue.passage_ids()
        assert sum(indexed) == (
            700 if breaks_at < 3 else 700 - 512
        )  # only finished pages of the journal are not redone


def test_restored_catalogue_rebuilds_the_index(catalogue: Catalogue) -> None:
    shelf = Shelf()
    shelf.held, shelf.seq = {"from the future": "x"}, 99
    catalogue.put_documents([entry("a", "x")])
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert shelf.ids() == catalogue.passage_ids()


def test_repair_adds_missing_and_deletes_extra_passages(catalogue: Catalogue) -> None:
    catalogue.put_documents([entry("a", "x", "y", "z")])
    shelf = Shelf()
    catch_up(catalogue, shelf, on_indexed=ignore)
    assert repair(catalogue, shelf, on_indexed=ignore) is None
    for id_ in list(shelf.held)[:2]:
        del shelf.held[id_]
    shelf.held["stranger"] = "?"
    note = repair(catalogue, shelf, on_indexed=ignore)
    assert note == "shelf: 2 passages were missing and 1 left over; repaired."
    assert shelf.ids() == catalogue.passage_ids()


def test_passages_added_before_the_repair_are_no_difference(catalogue: Catalogue) -> None:
    shelf = Shelf()
    catalogue.put_documents([entry("a", "x")])
    catch_up(catalogue, shelf, on_indexed=ignore)
    catalogue.put_documents([entry("b", "y")])  # an ingest reads its next batch meanwhile
    assert repair(catalogue, shelf, on_indexed=ignore) is None
    assert (shelf.ids(), shelf.applied()) == (catalogue.passage_ids(), catalogue.head())
