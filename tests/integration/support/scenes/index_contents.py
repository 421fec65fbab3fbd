"""Contents of the catalogue and its indexes, and their comparison by content and by search."""

from collections.abc import Iterable, Sequence

import numpy as np
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.index_set import ALL, IndexSet
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.vectors.index import VectorIndex, index_text
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine
from sleuth.tools.text.language import language_of
from sleuth.tools.text.names import kept_names
from sleuth.tools.types import Passage


def held(settings: Settings) -> list[tuple[int, set[str]]]:
    """Return the number and ids of passages in the catalogue, then in each index, without repairs."""
    catalogue = Catalogue(
        open_engine(catalogue_url(settings.home, None)), owner=settings.owner, collection=settings.collection
    )
    indexes = IndexSet(settings, catalogue, HashingEmbedder())
    stores = [(catalogue.count_passages(), catalogue.passage_ids())]
    for name in ALL:
        index = indexes.ready(name, lambda _name, _passages: None)
        stores.append((index.count(), index.ids()))
    assert indexes.notes == []
    indexes.close()
    catalogue.close()
    return stores


def check(indexes: IndexSet, passages: Sequence[Passage], looked_for: Sequence[Passage], gone: Iterable[str]) -> None:
    """Every index holds these passages and no others; it finds those looked for, and no texts that are gone."""
    texts = [*(passage.text for passage in looked_for), *gone]
    for name in ALL:
        index = indexes.ready(name, lambda _name, _passages: None)
        assert (index.count(), index.ids()) == (len(passages), {passage.id for passage in passages})
        if isinstance(index, KeywordIndex):
            check_words(index, passages, {word for text in texts for word in text.split()})
        elif isinstance(index, GraphIndex):
            check_names(index, passages, texts)
        elif isinstance(index, VectorIndex):
            check_meaning(index, passages, looked_for)


def check_words(index: KeywordIndex, passages: Sequence[Passage], words: Iterable[str]) -> None:
    """Each word leads to the passages that have it."""
    for word in words:
        if stems := {stem for variants in index.question_stems(word).values() for stem in variants}:
            wanted = {
                passage.id
                for passage in passages
                if stems & {*index.stems(index_text(passage), language_of(passage.text))}
            }
            assert {id for id, _ in index.search(word, len(passages) + 1)} == wanted, word


def check_names(index: GraphIndex, passages: Sequence[Passage], texts: Iterable[str]) -> None:
    """Each name in the texts leads to the passages that mention it."""
    mentioned = {passage.id: set(kept_names(passage.text)) for passage in passages}
    names = {name for text in texts for name in kept_names(text)}
    wanted = {name: {id for id, held in mentioned.items() if name in held} for name in names}
    found = index.mentioning(names, at_most=len(passages))
    assert {name: set(found.get(name, ())) for name in names} == wanted


def check_meaning(index: VectorIndex, passages: Sequence[Passage], looked_for: Iterable[Passage]) -> None:
    """Nothing is nearer to a passage's text than its own vector; a neighbor graph could miss it."""
    by_id, embed = {passage.id: passage for passage in passages}, HashingEmbedder().embed_query
    for passage in looked_for:
        (id, likeness), *_ = index._nearest_allowed(embed(index_text(passage)), 1, frozenset(by_id))
        assert likeness > 0.999, passage
        assert alike(by_id[id], passage), (id, passage)


def alike(one: Passage, other: Passage) -> bool:
    """Return whether two passages have the same vector."""
    embed = HashingEmbedder().embed_query
    return np.allclose(embed(index_text(one)), embed(index_text(other)))
