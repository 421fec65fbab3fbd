"""Search by words, by meaning, or by both, joined by reciprocal rank fusion."""

from collections.abc import Sequence

Scored = list[tuple[str, float]]

# Cormack, Clarke, Büttcher (SIGIR 2009): the constant that their experiments settled on.
_RRF_K = 60


def fuse(lists: Sequence[Scored]) -> Scored:
    """Reciprocal rank fusion: each list gives a passage 1 / (60 + its rank); equal sums go by id."""
    scores: dict[str, float] = {}
    for found in lists:
        for rank, (id_, _) in enumerate(found, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1.0 / (_RRF_K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def depth(k: int) -> int:
    """How deep each list is fetched for the best k of both: what one ranks low the other may rank high."""
    return max(100, 2 * k)
