"""PageRank with names and triples linked to the query by embeddings, beside linking by words.

    python benchmarks/ppr_linking.py CORPUS QUESTIONS [--limit N] [--vectors FOLDER]

CORPUS has lines {"title", "text", "triples"}, QUESTIONS as for ppr.py; plain or gzipped. Passages are found by vectors
too. "nearest triples": the walker starts at the names of the five triples of the best passages whose vectors are
nearest to the query's, not at those that have most of its words. "nearest names": also at the five names nearest to
it. "synonyms": names with a cosine above 0.8 have an edge. Prints JSON. `--vectors` keeps what is embedded.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from embedding_backends import vectors
from ppr import gold_of, judge, passages_of, rows

from sleuth.tools.documents import Passage
from sleuth.tools.embedder import Vectors
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.mention_graph.asked import Asked
from sleuth.tools.mention_graph.index import GraphIndex
from sleuth.tools.mention_graph.names import name_id
from sleuth.tools.mention_graph.search import MentionGraph
from sleuth.tools.mention_graph.spans import key
from sleuth.tools.pagerank.network import Network
from sleuth.tools.pagerank.ranking import LINKED, PageRank
from sleuth.tools.pagerank.triple_graph import Fact, TripleGraph
from sleuth.tools.retriever import Query
from sleuth.tools.triples import Triple
from sleuth.tools.vectors import index_text

Row = dict[str, Any]
SYNONYM = 0.8
"""The least cosine of two names that mean the same (HippoRAG, appendix)."""
ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class Near:
    """Vectors of everything; names stand under the number of what they are compared by."""

    queries: Mapping[str, Vectors]
    passages: Vectors
    ids: Sequence[str]
    triples: Mapping[Triple, Vectors]
    numbers: Sequence[int]
    names: Vectors
    synonyms: Mapping[int, Mapping[int, float]]

    def meaning(self, text: str, k: int) -> list[tuple[str, float]]:
        cosines = self.passages @ self.queries[text]
        return [(self.ids[at], float(cosines[at])) for at in np.argsort(-cosines)[:k]]


class Linking(PageRank):
    """PageRank whose start, or edges, come of vectors."""

    def __init__(
        self, near: Near, ways: set[str], index: GraphIndex, keywords: KeywordIndex, triples: TripleGraph
    ) -> None:
        super().__init__(index, keywords, triples, near.meaning)
        self._near, self._ways = near, ways

    def _linked(self, asked: Asked, passages: Iterable[str]) -> dict[Fact, float]:
        if "nearest triples" not in self._ways:
            return super()._linked(asked, passages)
        query, facts = (
            self._near.queries[asked.text],
            dict.fromkeys(f for id_ in passages for f in self._triples.facts(id_)),
        )
        cosines = {fact: float(self._near.triples[fact.triple] @ query) for fact in facts}
        return {fact: cosines[fact] for fact in nlargest(LINKED, cosines, key=lambda fact: (cosines[fact], fact))}

    def _names(self, texts: Iterable[str]) -> dict[int, float]:
        given = list(texts)
        found = super()._names(given)
        if "nearest names" in self._ways:
            cosines = self._near.names @ self._near.queries[given[0]]
            for at in np.argsort(-cosines)[:LINKED]:
                name = self._near.numbers[at]
                sharing = len(self._triples.with_name([name])[name])
                found.setdefault(name, float(cosines[at]) / sharing**0.5)
        return found

    def _around(self, front: Sequence[str], pool: Sequence[str], asked: Iterable[int]) -> Network:
        network = super()._around(front, pool, asked)
        edges = dict(network.edges)
        there = {node for edge in edges for node in edge}
        for one in there & self._near.synonyms.keys() if "synonyms" in self._ways else ():
            for other, cosine in self._near.synonyms[one].items():
                if other in there:
                    edges[one, other] = edges.get((one, other), 0.0) + cosine
        return Network(network.passages, edges)


def synonyms(numbers: Sequence[int], names: Vectors) -> dict[int, dict[int, float]]:
    """Each pair once, under the smaller number."""
    found: dict[int, dict[int, float]] = {}
    for start in range(0, len(names), ROWS):
        cosines = names[start : start + ROWS] @ names.T
        for row, at in zip(*np.where(cosines > SYNONYM), strict=True):
            one, other = numbers[start + row], numbers[at]
            if one < other:
                found.setdefault(one, {})[other] = float(cosines[row, at])
    return found


def embedded(passages: Sequence[Passage], triples: Sequence[Triple], queries: Sequence[str], kept: Path) -> Near:
    written = {key(end): end for triple in triples for end in (triple[0], triple[2]) if key(end)}

    def of(name: str, texts: Sequence[str]) -> Vectors:
        return vectors("compiled", name, list(texts), kept / "model", kept)

    names, numbers = of("names", list(written.values())), [name_id(each) for each in written]
    return Near(
        queries=dict(zip(queries, of("queries", queries), strict=True)),
        passages=of("passages", [index_text(passage) for passage in passages]),
        ids=[passage.id for passage in passages],
        triples=dict(zip(triples, of("triples", [" ".join(triple) for triple in triples]), strict=True)),
        numbers=numbers,
        names=names,
        synonyms=synonyms(numbers, names),
    )


def measured(lines: Sequence[Row], asked: Sequence[tuple[str, set[str]]], folder: Path, kept: Path) -> Row:
    passages = passages_of(lines)
    texts = {passage.id: passage for passage in passages}
    read: dict[str, list[Triple]] = {
        passage.id: [(s, p, o) for s, p, o in line["triples"]] for passage, line in zip(passages, lines, strict=True)
    }
    near = embedded(passages, list(dict.fromkeys(t for own in read.values() for t in own)), [q for q, _ in asked], kept)
    index, keywords = GraphIndex(folder / "graph.db"), KeywordIndex(folder / "words")
    for each in (index, keywords):
        each.apply(upsert=passages, delete=[])
    graph, facts = (
        MentionGraph(index, keywords, lambda ids: [texts[id_] for id_ in ids], near.meaning),
        TripleGraph(read),
    )

    def walking(ways: set[str], triples: TripleGraph) -> dict[str, float]:
        ranker = Linking(near, ways, index, keywords, triples)
        return judge(lambda text: [id_ for id_, _ in ranker.rank(Query(text=text)).ranked], asked)

    result = {"graph, formula": judge(lambda text: [each.passage.id for each in graph.candidates(text)[1]], asked)}
    result["graph-ppr, mentions"] = walking(set(), TripleGraph({}))
    for synonym, link in product(("", "synonyms"), ("", "nearest triples", "nearest names")):
        ways = {synonym, link} - {""}
        result[" + ".join(["graph-ppr, mentions and triples", *sorted(ways)])] = walking(ways, facts)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--vectors", type=Path)
    args = parser.parse_args()
    lines = list(rows(args.corpus))
    by_text = {(passage.title, passage.text): passage.id for passage in passages_of(lines)}
    asked = [(row["question"], gold) for row in rows(args.questions) if (gold := gold_of(row, by_text))][: args.limit]
    with tempfile.TemporaryDirectory() as scratch:
        result = measured(lines, asked, Path(scratch), args.vectors or Path(scratch))
    print(json.dumps({"passages": len(lines), "questions": len(asked), **result}, indent=2))


if __name__ == "__main__":
    main()
