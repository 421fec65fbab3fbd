"""Search by words, by meaning, or by both, joined by reciprocal rank fusion."""

from collections.abc import Sequence

Scored = list[tuple[str, float]]

# Cormack, Clarke and Büttcher (SIGIR 2009) use 60, for long rankings. Here a handful of passages is wanted, and with 60
# the places 1 and 20 count nearly the same: on 2Wiki recall@5 is then below that of words alone, with 2 it is above
# (`sleuth eval QUESTIONS --retrieval keyword,dense,hybrid`).
# Sums of normalised scores put more into the first two places (by 1 to 2 points on 2Wiki and MuSiQue) and less into the
# first five (by up to 1): five and more is what methods read.
_RRF_K = 2


def fuse(lists: Sequence[Scored]) -> Scored:
    """Reciprocal rank fusion: each list gives a passage 1 / (k + its rank); equal sums go by id."""
    scores: dict[str, float] = {}
    for found in lists:
        for rank, (id_, _) in enumerate(found, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1.0 / (_RRF_K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def depth(k: int) -> int:
    """How deep each list is fetched for the best k of both: what one ranks low the other may rank high."""
    return max(100, 2 * k)
