"""The walk on graphs small enough for pencil and paper; the graph of triples, however it came to be."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from entries import entry
from hypothesis import given
from hypothesis import strategies as st
from small_collection import SmallCollection, passage

from sleuth.tools.search.pagerank.local_graph import Node, random_walk
from sleuth.tools.search.pagerank.triple_graph import TripleCache, TripleGraph
from sleuth.tools.search.pagerank_search import search_pagerank
from sleuth.tools.search.retriever import Query
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.triples import Triple
from sleuth.tools.text import name_id
from sleuth.tools.types import Hit, Passage


def test_walk_between_two_nodes_matches_the_exact_solution() -> None:
    # x = 1/2 + y/2 and y = x/2.
    assert random_walk({("a", "b"): 5.0}, {"a": 3.0}) == pytest.approx({"a": 2 / 3, "b": 1 / 3})


def test_weights_decide_where_the_walker_goes() -> None:
    # a = 1/2 + (b + c)/2, b = 3/4 · a/2, c = 1/4 · a/2.
    found = random_walk({("a", "b"): 3.0, ("a", "c"): 1.0}, {"a": 1.0})
    assert found == pytest.approx({"a": 2 / 3, "b": 1 / 4, "c": 1 / 12})


def test_over_a_name_the_walker_comes_to_the_other_passage() -> None:
    # a = 1/2 + n/4, n = a/2 + b/2, b = n/4.
    found = random_walk({("a", 7): 1.0, ("b", 7): 1.0}, {"a": 1.0})
    assert found == pytest.approx({"a": 7 / 12, 7: 1 / 3, "b": 1 / 12})


def test_walk_restarts_from_a_dead_end_without_loss() -> None:
    assert random_walk({("a", "b"): 1.0}, {"alone": 1.0}) == pytest.approx({"alone": 1.0, "a": 0.0, "b": 0.0})
    assert random_walk({("a", "b"): 1.0}, {"a": 0.0}) == {}
    assert random_walk({}, {"a": 2.0, "b": 2.0}) == pytest.approx({"a": 0.5, "b": 0.5})


@given(
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(6, 9)), st.floats(0.1, 9), max_size=12),
    st.dictionaries(st.integers(0, 9), st.floats(0.1, 9), min_size=1, max_size=4),
)
def test_shares_are_shares_and_the_order_of_edges_does_not_matter(
    edges: dict[tuple[Node, Node], float], start: dict[Node, float]
) -> None:
    found = random_walk(edges, start)
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0
    turned = {(other, one): weight for (one, other), weight in reversed(edges.items())}
    assert random_walk(turned, start) == pytest.approx(found)


NAMES = ["Grey Sister", "Port Lethany", "Oda Brask", "Kelp Fair"]
some_triples = st.lists(st.tuples(st.sampled_from(NAMES), st.just("met"), st.sampled_from(NAMES)), max_size=3)
steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "read"]), st.sampled_from("abc"), st.sampled_from(NAMES), some_triples),
    max_size=10,
)


@given(steps)
async def test_however_the_graph_grew_it_is_what_a_rebuild_would_be(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, str, str, list[Triple]]]
) -> None:
    catalogue = Catalogue(f"sqlite:///{tmp_path_factory.mktemp('c')}/c.db", owner="local", collection="default")
    cache = TripleCache(catalogue)
    there: dict[str, str] = {}
    kept: dict[str, list[Triple]] = {}
    for what, id_, name, triples in steps:
        if what == "put":
            catalogue.put_documents([entry(id_, f"On {name}.", title="Note")])
            there[id_] = name
        elif what == "delete":
            catalogue.delete_documents([id_])
            there.pop(id_, None)
        elif id_ in there:
            (passage,) = entry(id_, f"On {there[id_]}.", title="Note").passages
            await catalogue.triples(model="small").put({passage.fingerprint(): triples}, version="1")
            kept[there[id_]] = triples
        kept = {name: triples for name, triples in kept.items() if name in there.values()}
        passages = {id_: entry(id_, f"On {name}.", title="Note").passages[0] for id_, name in there.items()}
        rebuilt = TripleGraph({passages[id_].id: kept[name] for id_, name in there.items() if name in kept})
        same(cache.graph(), rebuilt, [passage.id for passage in passages.values()])
    catalogue.close()


def same(one: TripleGraph, other: TripleGraph, passages: Sequence[str]) -> None:
    numbers = [name_id(name.casefold()) for name in NAMES]
    assert one.with_name(numbers) == other.with_name(numbers)
    for id_ in passages:
        assert sorted(set(one.facts(id_))) == sorted(set(other.facts(id_)))


FILM = passage("film", "Low Tide", "Low Tide is a film of 1931. It was made by Oda Brask. Edith Vey played in it.")
MAKER = passage("maker", "Oda Brask", "She was born in Kestrow.")
TOWN = passage("town", "A town", "It lies on the river Ulm, and the maker of many films was born there.")


class Scene(SmallCollection):
    """A small collection with triples."""

    def __init__(self, folder: Path, passages: Sequence[Passage], triples: dict[str, list[Triple]]) -> None:
        super().__init__(folder, passages)
        self._triples = TripleGraph(triples)

    def ask(self, text: str, k: int = 5, entities: tuple[str, ...] = (), seen: Sequence[str] = ()) -> list[Hit]:
        query = Query(text=text, k=k, mode="graph-ppr", entities=entities, seen=frozenset(seen))
        return search_pagerank(query, self.indexes, self.fetch, self._triples)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    triples = {"film": [("Low Tide", "made by", "Oda Brask")], "town": [("Oda Brask", "came from", "the river Ulm")]}
    return Scene(tmp_path, [FILM, MAKER, TOWN], triples)


def test_a_name_leads_to_the_passage_that_goes_by_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [FILM, MAKER], {})
    film, maker = scene.ask("Who made Low Tide?", k=2)
    assert (film.passage.id, maker.passage.id) == ("film", "maker")
    assert maker.why is not None
    (reason,) = [reason for reason in maker.why.reasons if reason.source == "film"]
    assert (reason.kind, reason.name, reason.stands_in) == ("walks", "Oda Brask", "maker")
    assert 0 < reason.gain <= maker.score < film.score
    assert maker.why.parts["alone"] + maker.why.parts["edges"] == pytest.approx(maker.score)
    assert maker.why.parts["edges"] > maker.why.parts["alone"]


def test_a_triple_leads_where_no_mention_does(scene: Scene, tmp_path: Path) -> None:
    unread = Scene(tmp_path / "unread", [FILM, MAKER, TOWN], {})
    assert "town" not in [hit.passage.id for hit in unread.ask("Low Tide", k=3) if hit.score > 0]
    town = next(hit for hit in scene.ask("Low Tide") if hit.passage.id == "town")
    assert town.score > 0
    assert town.why is not None
    reason = town.why.reasons[0]
    assert (reason.kind, reason.name) == ("states", "Oda Brask – came from – the river Ulm")
    # The film's triple has the query's words, so the walker starts at its names too.
    assert (reason.source, reason.stands_in) == ("", "town")


def test_names_that_are_known_already_are_where_the_walker_starts(scene: Scene) -> None:
    first = scene.ask("Where was that?", entities=("Oda Brask",))[0]
    assert first.passage.id == "maker"


def test_what_was_seen_comes_last_and_leads_on(scene: Scene) -> None:
    hits = scene.ask("Who was it?", k=40, seen=["film", "gone"])
    assert hits[0].passage.id == "maker"
    assert hits[-1].passage.id == "film"
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


def test_a_query_that_meets_nothing_finds_nothing(scene: Scene) -> None:
    assert scene.ask("qwertz") == []


def test_the_order_in_which_passages_came_does_not_matter(tmp_path: Path) -> None:
    rankings = []
    for turn in range(3):
        passages = [FILM, MAKER, TOWN]
        random.Random(turn).shuffle(passages)
        scene = Scene(tmp_path / str(turn), passages, {})
        rankings.append([(hit.passage.id, pytest.approx(hit.score)) for hit in scene.ask("Who made Low Tide?")])
    assert rankings[0] == rankings[1] == rankings[2]
