"""The graph of triples, however it came to be."""

from collections.abc import Sequence

import pytest
from entries import entry
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.search.knowledge_graph.triple_graph import TripleGraph
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.triples import Triple

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
        same(TripleGraph(catalogue.triple_stats().triples()), rebuilt, [passage.id for passage in passages.values()])
    catalogue.close()


def same(one: TripleGraph, other: TripleGraph, passages: Sequence[str]) -> None:
    assert one.names() == other.names()
    assert one.passages() == other.passages()
    for id_ in passages:
        assert sorted(set(one.facts(id_))) == sorted(set(other.facts(id_)))
