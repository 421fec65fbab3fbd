"""Counts, what is left to read, and whether anything has changed."""

from pathlib import Path

import pytest
from entries import entry

from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import open_engine

ODA = entry("a", "Oda was born in Varn.", "Varn is old.", title="Oda")
TWIN = entry("b", "Oda was born in Varn.", title="Oda")
BORN = ("Oda", "born in", "Varn")
OLD = ("Varn", "is", "old")
ONE, TWO = ODA.passages


@pytest.fixture(autouse=True)
def documents(catalogue: Catalogue) -> None:
    catalogue.put_documents([ODA, TWIN])


async def test_coverage_counts_equal_passages_for_each_model(catalogue: Catalogue) -> None:
    await catalogue.triples(model="small").put({ONE.fingerprint(): [BORN]}, version="1")
    await catalogue.triples(model="big").put({ONE.fingerprint(): [BORN, OLD], TWO.fingerprint(): []}, version="2")
    counts = [(each.model, each.version, each.passages, each.triples) for each in catalogue.triples().summary()]
    assert counts == [("big", "2", 3, 2), ("small", "1", 2, 1)]


async def test_unread_returns_one_of_equal_passages_in_pages(catalogue: Catalogue) -> None:
    readings = catalogue.triples(model="small")
    first = readings.unread(version="1", after="", limit=1)
    rest = readings.unread(version="1", after=first[0].fingerprint(), limit=9)
    assert {each.fingerprint() for each in [*first, *rest]} == {ONE.fingerprint(), TWO.fingerprint()}
    await catalogue.triples(model="small").put({ONE.fingerprint(): []}, version="1")
    left = readings.unread(version="1", after="", limit=9)
    assert [each.fingerprint() for each in left] == [TWO.fingerprint()]
    assert len(readings.unread(version="2", after="", limit=9)) == 2


async def test_triples_of_all_models_are_merged_by_passage(catalogue: Catalogue) -> None:
    await catalogue.triples(model="small").put({ONE.fingerprint(): [BORN]}, version="1")
    await catalogue.triples(model="big").put({ONE.fingerprint(): [OLD, BORN]}, version="1")
    assert catalogue.triples().all() == {ONE.id: [OLD, BORN], TWIN.passages[0].id: [OLD, BORN]}
    catalogue.delete_documents(["a"])
    assert catalogue.triples().all() == {TWIN.passages[0].id: [OLD, BORN]}


async def test_change_counter_changes_with_new_triples(catalogue: Catalogue, tmp_path: Path) -> None:
    stamps = [catalogue.triples().change_counter()]
    for triples in ([BORN], [OLD]):
        await catalogue.triples(model="small").put({ONE.fingerprint(): triples}, version="1")
        stamps.append(catalogue.triples().change_counter())
    assert len(set(stamps)) == 3
    other = Catalogue(open_engine(f"sqlite:///{tmp_path}/catalogue.db"), owner="local", collection="other")
    assert other.triples().change_counter() == stamps[0]
    other.close()
