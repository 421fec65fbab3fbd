"""Power iteration of a random walk with restart on a weighted undirected graph."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Node = str | int
"""A passage by its id, or a name by its number."""
Edges = Mapping[tuple[Node, Node], float]

DAMPING = 0.5
"""Probability of following an edge instead of restarting (HippoRAG 2, section 4)."""
STEPS = 30
"""Number of iterations; the remaining error is below DAMPING to this power."""


def random_walk(edges: Edges, start: Mapping[Node, float]) -> dict[Node, float]:
    """Return the stationary distribution of a random walk that restarts according to the weights in `start`.

    Edges are undirected; at a node without edges the walk restarts. The scores add up to 1; the result is empty if
    `start` has no positive weight.
    """
    nodes = list(dict.fromkeys([*start, *(node for edge in edges for node in edge)]))
    given = np.array([start.get(node, 0.0) for node in nodes])
    if not given.sum() > 0:
        return {}
    at = first = given / given.sum()
    step = _step(edges, {node: number for number, node in enumerate(nodes)})
    for _ in range(STEPS):
        moved = DAMPING * (step @ at)
        at = moved + (1 - moved.sum()) * first
    return dict(zip(nodes, at.tolist(), strict=True))


def _step(edges: Edges, place: Mapping[Node, int]) -> "csr_array":
    """Return the transition matrix: each column distributes a node's score along its edges, by their weights."""
    from scipy.sparse import csr_array

    ends = np.array([(place[one], place[other]) for one, other in edges], dtype=np.int64).reshape(-1, 2)
    to, come_from = np.concatenate([ends, ends[:, ::-1]]).T
    weights: NDArray[np.float64] = np.tile(np.array(list(edges.values())), 2)
    sums = np.bincount(come_from, weights=weights, minlength=len(place))
    return csr_array((weights / sums[come_from], (to, come_from)), shape=(len(place), len(place)))
