"""Training questions with the pools that search finds for them: what the ranker learns from."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search import Query
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.search import find_candidates
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking import matrix
from training.questions import TrainingSet, passage_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Candidates that search found for a question of a set: a row of features for each, and which of them are gold.

    `needed` is the number of gold passages, found or not.
    """

    set: str
    ids: tuple[str, ...]
    rows: NDArray[np.float32]
    gold: NDArray[np.bool_]
    needed: int


def pools(known: TrainingSet) -> tuple[list[Pool], tuple[str, ...]]:
    """Search for every question with gold as graph search does, without vectors; and the features' names."""
    passages = {id: passage_of(id, *titled) for id, titled in known.passages.items()}
    found: list[Pool] = []
    names: tuple[str, ...] = ()
    with TemporaryDirectory() as folder:
        index, keywords = GraphIndex(Path(folder) / "graph.db"), KeywordIndex(Path(folder) / "words")
        for each in (index, keywords):
            each.apply(upsert=list(passages.values()), delete=[])
        for row in known.questions:
            asked, candidates = find_candidates(
                Query(text=row["question"]), index, keywords, lambda ids: [passages[id_] for id_ in ids]
            )
            if not (candidates and row["gold_ids"]):
                continue
            rows, names = matrix(asked, candidates)
            ids = tuple(candidate.passage.id for candidate in candidates)
            gold = np.array([id_ in row["gold_ids"] for id_ in ids])
            found.append(Pool(set=row["set"], ids=ids, rows=rows, gold=gold, needed=len(row["gold_ids"])))
        index.close()
    return found, names
