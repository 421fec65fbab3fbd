"""Personalized PageRank compared with the entity graph's own scores, without vectors.

    python -m benchmarks.studies.ppr CORPUS QUESTIONS [--limit N]

CORPUS and QUESTIONS are JSON Lines, plain or gzipped. Where lines of the corpus have "triples", the walk goes over
these too, and over these alone. Gold are a question's "gold_ids", or its supporting "paragraphs". Prints JSON: recall
and milliseconds per question of each scorer; only ratios of times within one run mean something.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import options, rows
from sleuth.tools.search import KeywordIndex, Query
from sleuth.tools.search.entity_graph import EntityGraphSearch, GraphIndex
from sleuth.tools.search.pagerank import PageRank, TripleGraph, Weights
from sleuth.tools.search.ranking import load, rank
from sleuth.tools.types import Passage

DEPTHS = (2, 5, 20)
TRIPLES_ALONE = Weights(mentions=0.0, goes_by=0.0)

Scorer = Callable[[str], Sequence[str]]


def passages_of(lines: Sequence[dict[str, Any]]) -> list[Passage]:
    """Return lines without an id are known by their number."""
    made = []
    for number, line in enumerate(lines):
        id_ = str(line.get("id", number))
        text = line["text"]
        made.append(Passage(id=id_, document_id=id_, title=line["title"], text=text, start=0, end=len(text)))
    return made


def gold_of(question: dict[str, Any], by_text: dict[tuple[str, str], str]) -> set[str]:
    if "gold_ids" in question:
        return set(question["gold_ids"])
    supporting = [each for each in question.get("paragraphs", ()) if each["is_supporting"]]
    return {by_text[each["title"], each["text"]] for each in supporting if (each["title"], each["text"]) in by_text}


def scorers(folder: Path, lines: Sequence[dict[str, Any]]) -> dict[str, Scorer]:
    passages = passages_of(lines)
    texts = {passage.id: passage for passage in passages}
    index, keywords = GraphIndex(folder / "graph.db"), KeywordIndex(folder / "words")
    for each in (index, keywords):
        each.apply(upsert=passages, delete=[])
    graph = EntityGraphSearch(index, keywords, lambda ids: [texts[id_] for id_ in ids])
    found = zip(passages, lines, strict=True)
    read = TripleGraph({passage.id: [tuple(each) for each in line.get("triples", ())] for passage, line in found})

    def trained(text: str) -> list[str]:
        return [each.passage.id for each in rank(*graph.candidates(text), load())]

    def walking(triples: TripleGraph, weights: Weights) -> Scorer:
        ranker = PageRank(index, keywords, triples, weights=weights)
        return lambda text: [id_ for id_, _ in ranker.rank(Query(text=text, mode="graph-ppr")).ranked]

    made: dict[str, Scorer] = {
        "keyword": lambda text: [id_ for id_, _ in keywords.search(text, max(DEPTHS))],
        "graph, formula": lambda text: [each.passage.id for each in graph.candidates(text)[1]],
        "graph, trained": trained,
        "graph-ppr, mentions": walking(TripleGraph({}), Weights()),
    }
    if any(line.get("triples") for line in lines):
        made["graph-ppr, triples"] = walking(read, TRIPLES_ALONE)
        made["graph-ppr, mentions and triples"] = walking(read, Weights())
    return made


def judge(scorer: Scorer, asked: Sequence[tuple[str, set[str]]]) -> dict[str, float]:
    began = time.perf_counter()
    found = [list(scorer(text)) for text, _ in asked]
    seconds = time.perf_counter() - began
    sums = {
        depth: sum(len(gold & set(ids[:depth])) / len(gold) for ids, (_, gold) in zip(found, asked, strict=True))
        for depth in DEPTHS
    }
    shares = {f"recall@{depth}": round(100 * total / len(asked), 1) for depth, total in sums.items()}
    return {**shares, "ms": round(1000 * seconds / len(asked), 1)}


def main() -> None:
    args = options(__doc__, "corpus", "questions", "limit").parse_args()
    lines = list(rows(args.corpus))
    by_text = {(passage.title, passage.text): passage.id for passage in passages_of(lines)}
    asked = [(row["question"], gold) for row in rows(args.questions) if (gold := gold_of(row, by_text))][: args.limit]
    with tempfile.TemporaryDirectory() as scratch:
        result = {name: judge(scorer, asked) for name, scorer in scorers(Path(scratch), lines).items()}
    print(json.dumps({"passages": len(lines), "questions": len(asked), **result}, indent=2))


if __name__ == "__main__":
    main()
