"""The trained order of candidates, by the model that the package carries."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from sleuth.tools.search.entity_graph import Asked, Candidate
from sleuth.tools.search.ranking.features import VERSION, matrix
from sleuth.tools.search.ranking.trees import Trees, UnusableModel

MODEL = Path(__file__).with_name("model.npz")
SPREAD = 30
"""So many of the best are put in order together."""
COVER = 2.4
"""What a passage gains for all words of a question that no passage before it has; trained scores span about 10."""


@lru_cache(maxsize=4)
def load(file: Path = MODEL) -> Trees:
    """The model, read once; raises UnusableModel, also where it was trained for other features than today's."""
    trees = Trees.load(file)
    if (version := trees.meta.get("features_version")) != VERSION:
        raise UnusableModel(f"{file.name} is for version {version} of the features, which are now at {VERSION}")
    return trees


def rank(asked: Asked, candidates: Sequence[Candidate], trees: Trees) -> list[Candidate]:
    """The candidates with the trained scores, best first; what covers more of the question together comes earlier."""
    if not candidates:
        return []
    rows, _ = matrix(asked, candidates)
    for candidate, score in zip(candidates, trees.scores(rows), strict=True):
        candidate.score = float(score)
    ranked = sorted(candidates, key=_first)
    return [*_spread(asked, ranked[:SPREAD]), *ranked[SPREAD:]]


def _spread(asked: Asked, ranked: Sequence[Candidate]) -> Iterator[Candidate]:
    """Greedily, each time the best by its score and by what it has of the question that those before it lack."""
    left, missing = list(ranked), frozenset(asked.weights)
    while left:
        gains = {each.passage.id: COVER * asked.share(each.read.found & missing) for each in left}
        best = min(left, key=lambda each: (-each.score - gains[each.passage.id], each.passage.id))
        left.remove(best)
        missing -= best.read.found
        best.score += gains[best.passage.id]
        yield best


def _first(candidate: Candidate) -> tuple[float, str]:
    return -candidate.score, candidate.passage.id
