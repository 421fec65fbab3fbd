"""Ways to join keyword and dense results: reciprocal rank fusion against sums of normalised scores.

    python benchmarks/fusion.py CORPUS QUESTIONS [--vectors FOLDER] [--cache FOLDER]

Prints JSON: recall of each way over all questions. `--vectors` keeps what is embedded, as embedding_backends.py does.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from embedding_backends import DEPTHS, by_words, rows, shares, vectors

from sleuth.tools.documents import Passage
from sleuth.tools.search import Scored, depth, fuse
from sleuth.tools.vectors import index_text

BACKEND = "compiled"


def ranks(k: int) -> Callable[[Scored, Scored], dict[str, float]]:
    def join(words: Scored, near: Scored) -> dict[str, float]:
        return added([{id_: 1 / (k + rank) for rank, (id_, _) in enumerate(found, 1)} for found in (words, near)])

    return join


def scores(weight: float) -> Callable[[Scored, Scored], dict[str, float]]:
    """BM25 over its maximum, plus cosines stretched from the list's last to its first."""

    def join(words: Scored, near: Scored) -> dict[str, float]:
        best, first, last = words[0][1] if words else 1.0, near[0][1], near[-1][1]
        stretched = {id_: weight * (cosine - last) / ((first - last) or 1.0) for id_, cosine in near}
        return added([{id_: score / best for id_, score in words}, stretched])

    return join


def added(parts: list[dict[str, float]]) -> dict[str, float]:
    return {id_: sum(part.get(id_, 0.0) for part in parts) for part in parts for id_ in part}


WAYS = {f"ranks, k = {k}": ranks(k) for k in (2, 10, 60)} | {
    f"scores, 1 : {w}": scores(w) for w in (0.5, 0.7, 1.0, 1.4)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--cache", type=Path)
    args = parser.parse_args()
    passages = [
        Passage(
            id=row["id"], document_id=row["id"], title=row["title"], text=row["text"], start=0, end=len(row["text"])
        )
        for row in rows(args.corpus)
    ]
    asked = [row for row in rows(args.questions) if row.get("gold_ids")]
    golds, texts = [set(row["gold_ids"]) for row in asked], [row["question"] for row in asked]
    name, k, ids = args.corpus.parent.name, depth(max(DEPTHS)), [passage.id for passage in passages]
    with tempfile.TemporaryDirectory() as scratch:
        cache, kept = args.cache or Path(scratch) / "model", args.vectors or Path(scratch)
        words = by_words(passages, texts, Path(scratch) / "words", k)
        stored = vectors(BACKEND, f"{name}-corpus", [index_text(passage) for passage in passages], cache, kept)
        cosines = vectors(BACKEND, f"{name}-questions", texts, cache, kept) @ stored.T
    near: list[Scored] = [[(ids[at], float(row[at])) for at in np.argsort(-row)[:k]] for row in cosines]
    result = {"keyword": shares(words, golds), "dense": shares(near, golds)}
    result["sleuth"] = shares([fuse(lists) for lists in zip(words, near, strict=True)], golds)
    for way, join in WAYS.items():
        joined = [join(*lists) for lists in zip(words, near, strict=True)]
        result[way] = shares([sorted(each.items(), key=lambda item: (-item[1], item[0])) for each in joined], golds)
    print(json.dumps({"questions": len(asked), **result}, indent=2))


if __name__ == "__main__":
    main()
