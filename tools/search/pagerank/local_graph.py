"""The local graph around a question, of passages, the names that connect them, and triples; the random walk on it.

Like the entity graph it is never stored: the edges are looked up for the passages that a question finds, and for
passages one name away from the best of them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.entity_graph import GraphIndex
from sleuth.tools.search.pagerank.triple_graph import TripleGraph
from sleuth.tools.text import PassageNames

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Node = str | int
"""A passage by its id, or a name by its number."""
Edges = Mapping[tuple[Node, Node], float]

DAMPING = 0.5
"""Probability of following an edge instead of restarting (HippoRAG 2, section 4)."""
STEPS = 30
"""Number of iterations; the remaining error is below DAMPING to this power."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Weights of the kinds of edges: between a passage and a name that it mentions, has as an alias, or has in a
    triple, and between a triple's subject and object; 0 disables a kind. See `docs/benchmarks/retrieval.md`.
    """

    mentions: float = 1.0
    goes_by: float = 3.0
    says: float = 1.0
    states: float = 1.0


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class LocalGraph:
    """Passages with their edges to names."""

    passages: Sequence[str]
    edges: Mapping[tuple[Node, Node], float]

    def neighbours(self) -> dict[Node, dict[Node, float]]:
        """Return the adjacent nodes of each node, with the weights."""
        found: dict[Node, dict[Node, float]] = {}
        for (one, other), weight in self.edges.items():
            found.setdefault(one, {})[other] = weight
            found.setdefault(other, {})[one] = weight
        return found


def build_local_graph(
    index: GraphIndex,
    triples: TripleGraph,
    *,
    front: Sequence[str],
    pool: Iterable[str],
    asked: Iterable[int],
    weights: Weights = WEIGHTS,
) -> LocalGraph:
    """Return the local graph of the passages in the pool and of those that share a name with the front.

    Names of a single passage are omitted, except for those in the question; so are names that too many passages
    mention.
    """
    near = _near(index, triples, front)
    passages = list(dict.fromkeys([*front, *near, *pool]))
    named = index.names_of(passages)
    passages = [id_ for id_ in passages if id_ in named]
    in_triples = {id_: _names_in_triples(triples, id_) for id_ in passages}
    mentioned = Counter(name for each in named.values() for name in each.mentions)
    known = Counter(name for each in named.values() for name in each.aliases)
    stated = Counter(name for names in in_triples.values() for name in names)
    leading = {name for name, count in (mentioned + known + stated).items() if count > 1}
    kept = (leading - index.too_common(leading)) | {name for name in asked if name in mentioned + known + stated}
    edges: dict[tuple[Node, Node], float] = {}
    for id_ in passages:
        for name, weight in _connected(named[id_], in_triples[id_], mentioned, known, weights).items():
            if name in kept and weight:
                edges[id_, name] = weight
        for fact in triples.facts(id_):
            if fact.subject != fact.object and weights.states:
                pair = min(fact.subject, fact.object), max(fact.subject, fact.object)
                edges[pair] = edges.get(pair, 0.0) + weights.states
    return LocalGraph(passages, edges)


def _near(index: GraphIndex, triples: TripleGraph, front: Sequence[str]) -> Iterable[str]:
    named = index.names_of(front)
    names = dict.fromkeys(name for each in named.values() for name in (*each.aliases, *each.mentions))
    stated = dict.fromkeys(name for id_ in front for name in _names_in_triples(triples, id_))
    rare = dict.fromkeys(stated.keys() - index.too_common(stated))
    for found in (index.with_name(names), triples.with_name(rare)):
        for ids in found.values():
            yield from ids


def _names_in_triples(triples: TripleGraph, passage: str) -> dict[int, None]:
    return dict.fromkeys(name for fact in triples.facts(passage) for name in (fact.subject, fact.object))


def _connected(
    named: PassageNames, stated: Iterable[int], mentioned: Mapping[int, int], known: Mapping[int, int], kinds: Weights
) -> dict[int, float]:
    """Return a passage's names with the weights of their edges; the more passages share a name, the
    lower its weight.
    """
    weights = {name: kinds.mentions / math.sqrt(mentioned[name]) for name in named.mentions}
    for name, weight in named.aliases.items():
        weights[name] = weights.get(name, 0.0) + kinds.goes_by * weight / math.sqrt(known[name])
    for name in stated:
        weights[name] = weights.get(name, 0.0) + kinds.says
    return weights


def random_walk(edges: Edges, start: Mapping[Node, float]) -> dict[Node, float]:
    """Return the stationary distribution of a random walk that restarts according to the weights in `start`.

    Edges are undirected; at a node without edges the walk restarts. The scores add up to 1; the result is empty if
    `start` has no positive weight.
    """
    nodes = list(dict.fromkeys([*start, *(node for edge in edges for node in edge)]))
    given = np.array([start.get(node, 0.0) for node in nodes])
    if not given.sum() > 0:
        return {}
    place = {node: number for number, node in enumerate(nodes)}
    ends = np.array([(place[one], place[other]) for one, other in edges], dtype=np.int64).reshape(-1, 2)
    shares = stationary_shares(transition_matrix(ends, np.array(list(edges.values())), len(nodes)), given)
    return dict(zip(nodes, shares.tolist(), strict=True))


def stationary_shares(step: "csr_array", start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of each node in a random walk along `step` that restarts according to `start`."""
    first: NDArray[np.float64] = start / start.sum()
    at = first
    for _ in range(STEPS):
        moved = DAMPING * (step @ at)
        at = moved + (1 - moved.sum()) * first
    return at


def transition_matrix(ends: NDArray[np.int64], weights: NDArray[np.float64], nodes: int) -> "csr_array":
    """Return the matrix whose columns distribute a node's share along its edges.

    Args:
        ends: nodes of the undirected edges, of shape (edges, 2); repeated edges add up.
        weights: weight of each edge.
        nodes: number of nodes.
    """
    from scipy.sparse import csr_array

    to, come_from = np.concatenate([ends, ends[:, ::-1]]).T
    both = np.tile(weights, 2)
    sums = np.bincount(come_from, weights=both, minlength=nodes)
    return csr_array((both / sums[come_from], (to, come_from)), shape=(nodes, nodes))
