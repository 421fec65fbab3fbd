import sqlite3
from pathlib import Path

import pytest
from entries import entry
from graph_rows import graph_rows
from hypothesis import given
from hypothesis import strategies as st
from small_collection import passage

from sleuth.tools.collection.index_set import catch_up
from sleuth.tools.search.entity_graph.index import RARE, GraphIndex
from sleuth.tools.search.entity_graph.search import find_candidates
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import Query
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import open_engine
from sleuth.tools.text.names import name_id

NAMES = ["Grey Sister", "Port Lethany", "Oda Brask", "Kelp Fair", "Mill"]
texts = st.lists(
    st.builds("{} met {} near {}.".format, st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    min_size=1,
    max_size=3,
    unique=True,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd"), st.sampled_from(NAMES), texts),
        st.tuples(st.just("delete"), st.sampled_from("abcd"), st.just(""), st.just([])),
    ),
    max_size=8,
)


def ignore(_passages: int) -> None: ...


@pytest.fixture
def index(tmp_path: Path) -> GraphIndex:
    return GraphIndex(tmp_path / "mentions" / "graph.db")


FERRY = passage("ferry", "Grey Sister", "The ferry goes to Port Lethany and to Averil Quay.")
TOWN = passage("town", "Port Lethany", "A town with a quay.")
FILM = passage("film", "Port Lethany (film)", "A film.")


def test_index_finds_passages_named_so_and_counts_them(index: GraphIndex) -> None:
    index.apply(upsert=[FERRY, TOWN, FILM], delete=[])
    known = index.known_as(map(name_id, ["port lethany", "nobody"]))
    assert {(alias.passage, alias.weight, alias.sharing) for alias in known.pop(name_id("port lethany"))} == {
        ("town", 1.0, 2),
        ("film", 0.9, 2),
    }
    assert known == {}


def test_index_finds_passages_that_mention_a_name(index: GraphIndex) -> None:
    more = [passage(f"m{number}", "", "They saw Averil Quay.") for number in range(3)]
    index.apply(upsert=[FERRY, *more], delete=[])
    assert index.mentioning(["averil quay", "port lethany"], at_most=3) == {"port lethany": ["ferry"]}
    assert index.mentioning(["averil quay"], at_most=4) == {"averil quay": ["ferry", "m0", "m1", "m2"]}
    assert index.mentioning_among(["averil quay"], ["m1", "town", "gone"]) == {"averil quay": ["m1"]}
    assert index.mentioning_among([], ["m1"]) == {}
    crowd = [passage(f"c{number}", "Handbook", "They saw Averil Quay.") for number in range(51)]
    index.apply(upsert=crowd, delete=[])
    assert index.mentioning(["handbook", "averil quay", "port lethany"], at_most=RARE) == {"port lethany": ["ferry"]}


def test_index_of_another_version_is_rebuilt(index: GraphIndex, tmp_path: Path) -> None:
    index.apply(upsert=[FERRY], delete=[])
    index.set_applied(7)
    index.close()
    with sqlite3.connect(tmp_path / "mentions" / "graph.db") as db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'version'")
    db.close()
    again = GraphIndex(tmp_path / "mentions" / "graph.db")
    assert (again.count(), again.applied()) == (0, 0)


@given(steps=steps, seed=st.sampled_from(["Where did Oda Brask go?", "Who was near Port Lethany?"]))
def test_however_it_grew_it_is_what_a_rebuild_is(
    steps: list[tuple[str, str, str, list[str]]], seed: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    catalogue = Catalogue(open_engine(f"sqlite:///{folder}/c.db"), owner="local", collection="default")
    grown, rebuilt = GraphIndex(folder / "grown.db"), GraphIndex(folder / "rebuilt.db")
    for at, (kind, id_, title, lines) in enumerate(steps):
        if kind == "put":
            catalogue.put_documents([entry(id_, *lines, title=title)])
        else:
            catalogue.delete_documents([id_])
        if at % 2:
            catch_up(catalogue, grown, on_indexed=ignore)
    catch_up(catalogue, grown, on_indexed=ignore)
    catch_up(catalogue, rebuilt, on_indexed=ignore)
    assert graph_rows(folder / "grown.db") == graph_rows(folder / "rebuilt.db")
    assert grown.ids() == catalogue.passage_ids()
    keywords = KeywordIndex(folder / "words")
    keywords.apply(upsert=catalogue.passages(sorted(catalogue.passage_ids())), delete=[])
    query = Query(text=seed)
    found = [find_candidates(query, graph, keywords, catalogue.passages)[1] for graph in (grown, rebuilt)]
    assert found[0] == found[1]
    for opened in (grown, rebuilt, catalogue):
        opened.close()
