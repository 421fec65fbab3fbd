"""Triples are stored by the text of passages, and removed with them."""

import json
from pathlib import Path

import pytest
from entries import entry

from sleuth.graphs.core.triples import MemoryTriples, TripleStore
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.backends import CollectionGraph, ServedGraph, open_graph
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import look_up
from sleuth.tools.storage.catalogue import Catalogue, Entry
from sleuth.tools.storage.database import open_engine
from sleuth.tools.storage.triples import SqlTriples

BORN = ("Oda", "born in", "Värn")
OLD = ("Varn", "is", "old")


def open_catalogue(folder: Path, owner: str = "local", collection: str = "default") -> Catalogue:
    return Catalogue(open_engine(f"sqlite:///{folder}/catalogue.db"), owner=owner, collection=collection)


def marks(of: Entry) -> list[str]:
    return [passage.fingerprint() for passage in of.passages]


ONE = entry("a", "Oda was born in Varn.", "Varn is old.", title="Oda")
BORN_MARK, OLD_MARK = marks(ONE)


@pytest.fixture
def kept(catalogue: Catalogue) -> SqlTriples:
    catalogue.put_documents([ONE])
    return catalogue.triples(model="small")


@pytest.fixture(params=["memory", "sql"])
def store(request: pytest.FixtureRequest, kept: SqlTriples) -> TripleStore:
    return MemoryTriples() if request.param == "memory" else kept


async def test_triples_are_found_by_content_and_prompt(store: TripleStore) -> None:
    await store.put({BORN_MARK: [BORN, BORN], OLD_MARK: []}, version="1")
    assert await store.get([BORN_MARK, OLD_MARK, "other"], version="1") == {BORN_MARK: [BORN, BORN], OLD_MARK: []}
    assert await store.get([BORN_MARK], version="2") == {}
    await store.put({BORN_MARK: [OLD]}, version="1")
    await store.put({}, version="1")
    assert await store.get([BORN_MARK], version="1") == {BORN_MARK: [OLD]}
    assert await store.get([], version="1") == {}


async def test_triples_are_separate_by_model_collection_and_owner(
    tmp_path: Path, catalogue: Catalogue, kept: SqlTriples
) -> None:
    await kept.put({BORN_MARK: [BORN]}, version="1")
    assert await catalogue.triples(model="big").get([BORN_MARK], version="1") == {}
    for place in ({"owner": "other"}, {"collection": "other"}):
        beside = open_catalogue(tmp_path, **place)
        beside.put_documents([ONE])
        assert await beside.triples(model="small").get([BORN_MARK], version="1") == {}
        beside.delete_documents(["a"])
        beside.close()
    assert await kept.get([BORN_MARK], version="1") == {BORN_MARK: [BORN]}


async def test_triples_are_found_by_name_with_their_passage(kept: SqlTriples) -> None:
    assert not await kept.any()
    await kept.put({BORN_MARK: [BORN], OLD_MARK: [OLD]}, version="1")
    first, second = (passage.id for passage in ONE.passages)
    assert await kept.any()
    assert await kept.naming("värn") == [(BORN, first)] == await kept.naming("oda")
    assert await kept.naming("VARN") == [(OLD, second)]
    assert await kept.naming("is") == await kept.naming("born in") == await kept.naming("%") == []


async def test_collection_serves_as_knowledge_graph(kept: SqlTriples) -> None:
    await kept.put({BORN_MARK: [BORN], OLD_MARK: [OLD]}, version="1")
    graph = CollectionGraph(kept)
    calls = [("open_search_entity_by_name", {"name": "oda"}), ("open_get_entity", {"entity": "varn"})]
    found = await look_up(graph, [*calls, ("open_get_entity", {"entity": "Var"})])
    passage = ONE.passages[1].id
    assert [json.loads(each.text) for each in found[:2]] == [
        ["Oda"],
        [{"subject": "Varn", "predicate": "is", "object": "old", "passage": passage}],
    ]
    assert found[2].problem == "nothing is known"


async def test_graph_is_a_server_or_the_triples(kept: SqlTriples) -> None:
    async with open_graph(None) as nothing, open_graph("http://x", kept) as served, open_graph(None, kept) as own:
        assert (nothing, type(served), type(own)) == (None, ServedGraph, CollectionGraph)


async def test_triples_are_deleted_with_the_last_passage_of_their_content(
    catalogue: Catalogue, kept: SqlTriples
) -> None:
    other = catalogue.triples(model="big")
    await kept.put({BORN_MARK: [BORN], OLD_MARK: [OLD]}, version="1")
    await other.put({BORN_MARK: [BORN]}, version="2")
    catalogue.put_documents([entry("a", "Something new.", "Varn is old.", title="Oda")])
    assert await kept.get([BORN_MARK, OLD_MARK], version="1") == {OLD_MARK: [OLD]}
    catalogue.put_documents([entry("b", "Varn is old.", title="Oda")])
    catalogue.delete_documents(["a"])
    assert await kept.get([OLD_MARK], version="1") == {OLD_MARK: [OLD]}
    await kept.put({BORN_MARK: [BORN]}, version="1")  # its passage is gone
    catalogue.put_documents([ONE])
    assert await kept.get([BORN_MARK], version="1") == await other.get([BORN_MARK], version="2") == {}
