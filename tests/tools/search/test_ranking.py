from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_collection import SmallCollection, passage

from sleuth.tools.search.entity_graph.edges import QueryTerms
from sleuth.tools.search.entity_graph.search import Candidate, find_candidates
from sleuth.tools.search.ranking import VERSION, Trees, load, matrix, rank
from sleuth.tools.search.retriever import Query

PASSAGES = [
    passage("film", "Low Tide", "Low Tide is a film of 1931. It was directed by Oda Brask."),
    passage("director", "Oda Brask", "She was born in Kestrow."),
    passage("other", "High Tide", "High Tide is a song."),
    *(passage(f"f{number}", f"Report {number}", "A report on the weather.") for number in range(20)),
]
QUESTION = "Where was the director of Low Tide born?"
Found = tuple[QueryTerms, list[Candidate]]


@pytest.fixture
def collection(tmp_path: Path) -> SmallCollection:
    return SmallCollection(tmp_path, PASSAGES, filler=[])


def search(collection: SmallCollection, question: str) -> Found:
    return find_candidates(Query(text=question), collection.graph, collection.keywords, collection.fetch)


@pytest.fixture
def found(collection: SmallCollection) -> Found:
    return search(collection, QUESTION)


def stump(feature: int, threshold: float) -> Trees:
    """One tree of one question: rows with more than the threshold win."""
    return Trees(
        roots=np.array([0], dtype=np.int32),
        feature=np.array([feature, 0, 0], dtype=np.int16),
        threshold=np.array([threshold, np.inf, np.inf]),
        left=np.array([1, 1, 2], dtype=np.int32),
        right=np.array([2, 1, 2], dtype=np.int32),
        value=np.array([0.0, -1.0, 2.0], dtype=np.float32),
        meta={"features_version": VERSION},
    )


def test_each_row_gets_the_value_of_its_leaf_in_every_tree() -> None:
    rows = np.array([[0.0, 1.0], [0.0, 3.0]], dtype=np.float32)
    one = stump(1, 2.0)
    assert one.scores(rows).tolist() == [-1.0, 2.0]
    two = replace(one, roots=np.array([0, 0], dtype=np.int32))
    assert two.scores(rows).tolist() == [-2.0, 4.0]
    assert one.scores(np.zeros((0, 2), dtype=np.float32)).tolist() == []


def test_what_the_found_passage_names_is_ranked_with_it(found: Found, collection: SmallCollection) -> None:
    ranked = rank(*found, load())
    assert {candidate.passage.id for candidate in ranked[:2]} == {"film", "director"}
    assert [candidate.score for candidate in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert rank(found[0], [], load()) == []
    book = search(collection, " ".join(f"word{number} report" for number in range(3000)))
    assert len(rank(*book, load())) == len(book[1]) > 0


def test_the_order_of_candidates_makes_no_difference(found: Found) -> None:
    asked, candidates = found
    forth, _ = matrix(asked, candidates)
    back, _ = matrix(asked, candidates[::-1])
    assert np.array_equal(forth, back[::-1])


def test_changed_features_need_a_new_version_and_a_new_model(found: Found) -> None:
    """If this fails, a feature or the formula has changed: raise VERSION and train the shipped model again."""
    rows, names = matrix(*found)
    assert rows.shape == (len(found[1]), len(names))
    assert load().meta["features"] == list(names)
    assert np.isfinite(rows).all()
    shares = rows[:, [names.index(name) for name in ("all", "best_sentence", "in_title", "asked", "names_union")]]
    assert 0 <= shares.min() <= shares.max() <= 1.0001
    fingerprint = float(np.arange(1, len(names) + 1) @ rows.sum(axis=0))
    assert (VERSION, fingerprint) == (1, pytest.approx(3408.70, rel=1e-4))
