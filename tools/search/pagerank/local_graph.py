"""The local graph around a question: passages, the names that connect them, and triples.

Like the entity graph it is never stored: the edges are looked up for the passages that a question finds, and for
passages one name away from the best of them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sleuth.tools.search.entity_graph import GraphIndex, PassageNames
from sleuth.tools.search.pagerank.power_iteration import Node
from sleuth.tools.search.pagerank.triple_graph import TripleGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Weights of the kinds of edges: between a passage and a name that it mentions, has as an alias, or has in a
    triple, and between a triple's subject and object; 0 disables a kind. Tuned with benchmarks/studies/ppr.py.
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
    said = {id_: _said(triples, id_) for id_ in passages}
    mentioned = Counter(name for each in named.values() for name in each.mentions)
    known = Counter(name for each in named.values() for name in each.aliases)
    stated = Counter(name for names in said.values() for name in names)
    leading = {name for name, count in (mentioned + known + stated).items() if count > 1}
    kept = (leading - index.too_common(leading)) | {name for name in asked if name in mentioned + known + stated}
    edges: dict[tuple[Node, Node], float] = {}
    for id_ in passages:
        for name, weight in _connected(named[id_], said[id_], mentioned, known, weights).items():
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
    said = dict.fromkeys(name for id_ in front for name in _said(triples, id_))
    rare = dict.fromkeys(said.keys() - index.too_common(said))
    for found in (index.with_name(names), triples.with_name(rare)):
        for ids in found.values():
            yield from ids


def _said(triples: TripleGraph, passage: str) -> dict[int, None]:
    return dict.fromkeys(name for fact in triples.facts(passage) for name in (fact.subject, fact.object))


def _connected(
    named: PassageNames, said: Iterable[int], mentioned: Mapping[int, int], known: Mapping[int, int], kinds: Weights
) -> dict[int, float]:
    """Return a passage's names with the weights of their edges; the more passages share a name, the
    lower its weight.
    """
    weights = {name: kinds.mentions / math.sqrt(mentioned[name]) for name in named.mentions}
    for name, weight in named.aliases.items():
        weights[name] = weights.get(name, 0.0) + kinds.goes_by * weight / math.sqrt(known[name])
    for name in said:
        weights[name] = weights.get(name, 0.0) + kinds.says
    return weights
