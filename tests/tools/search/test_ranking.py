from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.query_terms import QueryTerms
from sleuth.tools.search.entity_graph.search import Candidate, EntityGraphSearch
from sleuth.tools.search.graph_search import search_graph
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking.features import VERSION, matrix
from sleuth.tools.search.ranking.trained import Trees, UnusableModel, load, rank
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Passage


def passage(id_: str, title: str, text: str) -> Passage:
    return Passage(id=id_, document_id=id_, title=title, text=text, start=0, end=len(text))


PASSAGES = {
    each.id: each
    for each in [
        passage("film", "Low Tide", "Low Tide is a film of 1931. It was directed by Oda Brask."),
        passage("director", "Oda Brask", "She was born in Kestrow."),
        passage("other", "High Tide", "High Tide is a song."),
        *(passage(f"f{number}", f"Report {number}", "A report on the weather.") for number in range(20)),
    ]
}
QUESTION = "Where was the director of Low Tide born?"


@pytest.fixture
def indexes(tmp_path: Path) -> tuple[GraphIndex, KeywordIndex]:
    pair = GraphIndex(tmp_path / "graph.db"), KeywordIndex(tmp_path / "words")
    for index in pair:
        index.apply(upsert=list(PASSAGES.values()), delete=[])
    return pair


def fetch(ids: list[str]) -> list[Passage]:
    return [PASSAGES[id_] for id_ in ids if id_ in PASSAGES]


@pytest.fixture
def found(indexes: tuple[GraphIndex, KeywordIndex]) -> tuple[QueryTerms, list[Candidate]]:
    return EntityGraphSearch(*indexes, fetch).candidates(QUESTION)  # type: ignore[arg-type]


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


def test_a_model_comes_back_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    stump(1, 2.0).save(file)
    again = Trees.load(file)
    assert again.meta == {"features_version": VERSION}
    assert again.scores(np.array([[0.0, 3.0]], dtype=np.float32)).tolist() == [2.0]


def test_the_shipped_model_was_trained_for_these_features(found: tuple[QueryTerms, list[Candidate]]) -> None:
    _, names = matrix(*found)
    assert load().meta["features"] == list(names)


def test_what_the_found_passage_names_is_ranked_with_it(found: tuple[QueryTerms, list[Candidate]]) -> None:
    ranked = rank(*found, load())
    assert {candidate.passage.id for candidate in ranked[:2]} == {"film", "director"}
    assert [candidate.score for candidate in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert rank(found[0], [], load()) == []


def test_the_order_of_candidates_makes_no_difference(found: tuple[QueryTerms, list[Candidate]]) -> None:
    asked, candidates = found
    forth, _ = matrix(asked, candidates)
    back, _ = matrix(asked, candidates[::-1])
    assert np.array_equal(forth, back[::-1])


def test_features_are_bounded_numbers(found: tuple[QueryTerms, list[Candidate]]) -> None:
    rows, names = matrix(*found)
    assert rows.shape == (len(found[1]), len(names))
    assert np.isfinite(rows).all()
    shares = rows[:, [names.index(name) for name in ("all", "best_sentence", "in_title", "asked", "names_union")]]
    assert 0 <= shares.min() <= shares.max() <= 1.0001


def test_a_pasted_book_is_a_question_too(indexes: tuple[GraphIndex, KeywordIndex]) -> None:
    book = " ".join(f"word{number} report" for number in range(3000))
    asked, candidates = EntityGraphSearch(*indexes, fetch).candidates(book)  # type: ignore[arg-type]
    assert len(rank(asked, candidates, load())) == len(candidates) > 0


def test_without_a_usable_model_the_formula_ranks_with_a_warning(
    indexes: tuple[GraphIndex, KeywordIndex], tmp_path: Path
) -> None:
    with pytest.raises(UnusableModel, match=r"lost\.npz is missing"):
        load(tmp_path / "lost.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    with pytest.raises(UnusableModel, match="cannot be read"):
        load(tmp_path / "broken.npz")
    replace(stump(0, 0.0), meta={"features_version": -1}).save(tmp_path / "old.npz")
    with pytest.raises(UnusableModel, match="version -1 of the features"):
        load(tmp_path / "old.npz")
    graph, keywords = indexes
    query = Query(text=QUESTION, k=3, mode="graph")
    hits = search_graph(query, {"graph": graph, "keyword": keywords}, fetch, model=tmp_path / "lost.npz")  # type: ignore[arg-type]
    assert hits[0].why is not None
    assert hits[0].why.note == "Ranked by the untrained formula: lost.npz is missing."
    plain = search_graph(query, {"graph": graph, "keyword": keywords}, fetch, model=None)  # type: ignore[arg-type]
    assert [hit.passage.id for hit in plain] == [hit.passage.id for hit in hits]
    assert plain[0].why is not None
    assert not plain[0].why.note


def test_changed_features_need_a_new_version_and_a_new_model(found: tuple[QueryTerms, list[Candidate]]) -> None:
    """If this fails, a feature or the formula has changed: raise VERSION and train the shipped model again."""
    rows, names = matrix(*found)
    fingerprint = float(np.arange(1, len(names) + 1) @ rows.sum(axis=0))
    assert (VERSION, fingerprint) == (1, pytest.approx(3408.70, rel=1e-4))
