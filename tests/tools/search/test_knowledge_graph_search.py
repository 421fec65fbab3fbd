"""The knowledge graph of a collection: vectors of names, synonyms, and the walk on graphs small enough for paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search.knowledge_graph import MATCHES, NameGraph, find_facts, names_in
from sleuth.tools.search.name_vectors import NameVectorFile, NameVectors
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors.embedder import Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry
from sleuth.tools.text.names import name_id
from sleuth.tools.types import Triple


class Compass:
    """An embedder of directions: each text has the angle given for it, in degrees; "near X" is 30 degrees from X."""

    name = "compass"

    def __init__(self, *texts: str) -> None:
        self._axes = {text: axis for axis, text in enumerate(texts)}

    def embed_passages(self, texts: list[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        vector = np.zeros(len(self._axes) + 1, dtype=np.float32)
        vector[self._axes[text.removeprefix("near ")]] = np.cos(np.pi / 6) if text.startswith("near ") else 1.0
        vector[-1] = 0.5 if text.startswith("near ") else 0.0
        return vector


LETTERS = ("a", "b", "c", "d", "e", "f", "g")


def knowledge(triples: Mapping[str, Sequence[Triple]], folder: Path) -> NameGraph:
    facts, embedder = find_facts(triples), Compass(*LETTERS)
    return NameGraph(facts, NameVectorFile(folder / "names.npz", embedder).update(names_in(facts)), embedder)


def shares(graph: NameGraph, *entities: str) -> dict[str, float]:
    found = graph.rank(entities).shares
    return {text: pytest.approx(found[name_id(text)]) for text in LETTERS if name_id(text) in found}


def test_walk_from_an_entity_follows_triples(tmp_path: Path) -> None:
    # a = 1/2 + b/4, b = a/2 + c/2, c = b/4; the other names of the graph are orthogonal to the entity.
    graph = knowledge({"one": [("a", "met", "b")], "two": [("b", "met", "c")]}, tmp_path)
    assert shares(graph, "a") == {"a": 7 / 12, "b": 1 / 3, "c": 1 / 12}
    assert graph.rank(["a"]).passages == [("one", pytest.approx(11 / 12)), ("two", pytest.approx(5 / 12))]


def test_two_triples_between_names_weigh_twice(tmp_path: Path) -> None:
    # a = 1/2 + (b + c)/2, b = 2/3 · a/2, c = 1/3 · a/2.
    graph = knowledge({"one": [("a", "met", "b"), ("b", "knew", "a"), ("a", "met", "c")]}, tmp_path)
    assert shares(graph, "a") == {"a": 2 / 3, "b": 2 / 9, "c": 1 / 9}


def test_synonyms_are_connected_by_their_similarity(tmp_path: Path) -> None:
    # "near b" and b have a similarity of cos 30°.
    triples = {"one": [("a", "met", "b")], "two": [("near b", "met", "c")]}
    graph, like = knowledge(triples, tmp_path), np.cos(np.pi / 6)
    assert (graph.names(), graph.synonyms()) == (4, 1)
    found = graph.rank(["a"]).shares
    b, near = found[name_id("b")], found[name_id("near b")]
    assert found[name_id("a")] == pytest.approx(0.5 + b / 2 / (1 + like), abs=1e-3)
    assert near == pytest.approx(b / 2 * like / (1 + like) + found[name_id("c")] / 2, abs=1e-3)
    assert [id_ for id_, _ in graph.rank(["a"]).passages] == ["one", "two"]


def test_entity_restarts_at_similar_names_that_few_passages_have(tmp_path: Path) -> None:
    lonely = {str(at): [("a", "is", "a")] for at in range(2)} | {"other": [("near a", "is", "near a")]}
    graph = knowledge(lonely, tmp_path)
    one, other = 1 / 2, np.cos(np.pi / 6)  # similarity over the number of passages
    start = one / (one + other)
    edge = graph.rank(["a"]).shares
    assert edge[name_id("a")] == pytest.approx(start / 2 + edge[name_id("near a")] / 2, abs=1e-3)


def test_entity_is_matched_to_few_names(tmp_path: Path) -> None:
    triples = {text: [(text, "is", text)] for text in LETTERS}
    graph = knowledge(triples, tmp_path)
    assert MATCHES == 5
    assert graph.rank(["g"]).passages == [("g", pytest.approx(2.0))]
    assert graph.rank([]).passages == []
    assert knowledge({}, tmp_path / "empty").rank(["g"]).passages == []


def test_passage_counts_a_name_as_often_as_its_triples_have_it(tmp_path: Path) -> None:
    graph = knowledge({"once": [("a", "is", "a")], "often": [("a", "is", "a"), ("a", "was", "a")]}, tmp_path)
    assert graph.rank(["a"]).passages == [("often", pytest.approx(4.0)), ("once", pytest.approx(2.0))]


WORDS = st.sets(st.sampled_from([f"{first}{second}" for first in ("", "near ") for second in LETTERS]))


@given(st.lists(WORDS, max_size=4))
def test_vectors_are_the_same_however_names_came_and_went(
    tmp_path_factory: pytest.TempPathFactory, turns: Sequence[set[str]]
) -> None:
    folder = tmp_path_factory.mktemp("names")
    for turn in turns:
        names = {name_id(text): text for text in turn}
        grown = NameVectorFile(folder / "grown.npz", Compass(*LETTERS)).update(names)
        same(grown, NameVectorFile(folder / "new" / f"{len(turn)}.npz", Compass(*LETTERS)).update(names))
        (folder / "new" / f"{len(turn)}.npz").unlink(missing_ok=True)


def same(one: NameVectors, other: NameVectors) -> None:
    assert one.names.tolist() == other.names.tolist()
    assert one.rows.tolist() == other.rows.tolist()
    paired = [
        {tuple(pair): like for pair, like in zip(each.pairs.tolist(), each.similarities.tolist(), strict=True)}
        for each in (one, other)
    ]
    assert paired[0] == pytest.approx(paired[1])
    assert all(len(found) == len(each.pairs) for found, each in zip(paired, (one, other), strict=True))


def test_file_spares_embedding_unless_it_is_damaged_or_of_another_embedder(tmp_path: Path) -> None:
    names, file = {name_id(text): text for text in ("a", "b")}, tmp_path / "names.npz"

    def embedded(name: str) -> list[str]:
        embedder = HashingEmbedder(name)
        NameVectorFile(file, embedder).update(names)
        return embedder.embedded

    assert sorted(embedded("hashing")) == ["a", "b"]
    assert embedded("hashing") == []
    assert sorted(embedded("other")) == ["a", "b"]
    for damage in (b"", b"PK\x03\x04 and so on", file.read_bytes()[:-40]):
        file.write_bytes(damage)
        assert sorted(embedded("other")) == ["a", "b"]


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


FILM, TOWN, PORT = (
    entry("film", "Low Tide was made by Oda Brask."),
    entry("town", "The maker was born on the river Ulm."),
    entry("port", "Ships come to Varn."),
)


async def store(library: Collection, triples: Mapping[str, Sequence[Triple]]) -> None:
    for document, those in triples.items():
        (passage,) = await library.passages_of(document)
        await library.triples(model="small").put({passage.fingerprint(): list(those)}, version="1")


async def test_search_merges_vectors_and_graph_and_explains(settings: Settings, embedder: HashingEmbedder) -> None:
    async with await Collection.open(settings, embedder=embedder) as library:
        await Ingestion(library).put([FILM, TOWN, PORT])
        facts = [("Low Tide", "made by", "Oda Brask")], [("Oda Brask", "born on", "the river Ulm")]
        await store(library, {"film": facts[0], "town": facts[1], "port": []})
        query = Query(text="Ships come to Varn.", k=3, mode="knowledge-graph", entities=("Oda Brask",))
        hits = {hit.passage.document_id: hit for hit in await library.search(query)}
        assert hits.keys() == {"port", "film", "town"}
        assert all(hit.why is not None and not hit.why.note for hit in hits.values())
        port, town = hits["port"].why, hits["town"].why
        assert port and town
        assert (port.parts["edges"], port.reasons) == (0.0, ())
        assert town.parts["edges"] > 0
        assert hits["town"].score == pytest.approx(sum(town.parts.values()))
        assert town.reasons[0].name == "Oda Brask – born on – the river Ulm"
        unnamed = await library.search(Query(text="Ships", k=3, mode="knowledge-graph", entities=("Oda Brask",)))
        assert all(hit.why and hit.why.parts["edges"] for hit in unnamed if hit.passage.document_id != "port")
        by_rule = await library.search(Query(text="What did Oda Brask do?", k=1, mode="knowledge-graph"))
        assert by_rule[0].passage.document_id in {"film", "town"}


async def test_search_notes_an_empty_and_an_incomplete_graph(settings: Settings, embedder: HashingEmbedder) -> None:
    async with await Collection.open(settings, embedder=embedder) as library:
        await Ingestion(library).put([FILM, TOWN])
        query = Query(text="Low Tide", k=2, mode="knowledge-graph")
        notes = {hit.why.note for hit in await library.search(query) if hit.why}
        assert notes == {
            "The knowledge graph is empty, so only vectors were searched: run `sleuth triples read` to build it."
        }
        await store(library, {"film": [("Low Tide", "made by", "Oda Brask")]})
        notes = {hit.why.note for hit in await library.search(query) if hit.why}
        assert notes == {"The knowledge graph covers 1 of 2 passages: run `sleuth triples read` to complete it."}


def replace_text(of: Entry) -> Entry:
    return entry(of.document.id, "Low Tide was made by nobody.")


async def test_changed_and_deleted_documents_leave_no_vectors_of_names(
    settings: Settings, embedder: HashingEmbedder
) -> None:
    async with await Collection.open(settings, embedder=embedder) as library:
        await Ingestion(library).put([FILM, TOWN])
        await store(library, {"film": [("Low Tide", "made by", "Oda Brask")], "town": [("Varn", "on", "the Ulm")]})
        assert (await library.knowledge_graph()).names() == 4
        (file,) = (settings.home / "names").iterdir()
        await Ingestion(library).put([replace_text(FILM)])
        await Ingestion(library).finish()
        with np.load(file) as stored:
            assert sorted(stored["names"].tolist()) == sorted(map(name_id, ("varn", "the ulm")))
    without = settings.model_copy(update={"embedder": "none"})
    async with await Collection.open(without) as library:
        await Ingestion(library).delete(["town"])
        assert not file.exists(), "without an embedder it cannot be read, only deleted"
        await Ingestion(library).put([TOWN])
        with pytest.raises(UsageError, match="SLEUTH_EMBEDDER"):
            await library.search(Query(text="Ulm", mode="knowledge-graph"))
