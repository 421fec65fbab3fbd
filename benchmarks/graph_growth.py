"""What the mention graph costs as it grows: adding passages one by one against at once, and queries at several sizes.

    python benchmarks/graph_growth.py CORPUS QUESTIONS [--added N] [--sizes N ...] [--limit N]

CORPUS and QUESTIONS are JSON Lines, plain or gzipped. A corpus is grown by copies in which every name is another one,
except those that more than one passage in a hundred has: these stay, and become as frequent as in a larger corpus.
Prints one JSON value. Ratios are of processor time, which other work on the machine disturbs least; the
keyword index is part of a query. Passages live in memory here: what the catalogue takes to fetch 150 is not measured.
"""

import argparse
import gzip
import json
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sleuth.tools.documents import Passage
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.mention_graph.index import GraphIndex
from sleuth.tools.mention_graph.search import MentionGraph

BATCH = 256
NAME = re.compile(r"\b[A-Z]\w{2,}")


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def grown(corpus: Sequence[dict[str, Any]], size: int) -> Iterator[Passage]:
    """The corpus, then copies of it with other names, until there are enough passages."""
    counts = Counter(name for row in corpus for name in set(NAME.findall(row["text"])))
    frequent = {name for name, count in counts.items() if count > len(corpus) / 100}
    for number in range(size):
        copy, at = divmod(number, len(corpus))
        ending = "".join(chr(ord("a") + int(digit)) for digit in str(copy)) if copy else ""

        def renamed(match: re.Match[str], ending: str = ending) -> str:
            return match[0] if match[0] in frequent else match[0] + ending

        title, text = (NAME.sub(renamed, str(corpus[at][part])) for part in ("title", "text"))
        id_ = f"{corpus[at]['id']}{'/' + ending if ending else ''}"
        yield Passage(id=id_, document_id=id_, title=title, text=text, start=0, end=len(text))


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def batches(passages: Sequence[Passage]) -> Iterator[Sequence[Passage]]:
    for start in range(0, len(passages), BATCH):
        yield passages[start : start + BATCH]


def adding(passages: Sequence[Passage], folder: Path) -> dict[str, float]:
    """Processor seconds of both ways; as many commits of nothing are taken off the one that commits after each."""
    single, whole = GraphIndex(folder / "single.db"), GraphIndex(folder / "whole.db")
    at_once = seconds(lambda: [whole.apply(upsert=batch, delete=[]) for batch in batches(passages)])
    one_by_one = seconds(lambda: [single.apply(upsert=[passage], delete=[]) for passage in passages])
    commits = seconds(lambda: [single.set_applied(number) for number in range(len(passages))])
    assert single.facts() == whole.facts()
    result = {"passages": len(passages), "at_once_s": at_once, "one_by_one_s": one_by_one, "commits_s": commits}
    return result | {"ratio": (one_by_one - commits) / at_once}


def asking(passages: Sequence[Passage], questions: Sequence[str], folder: Path) -> dict[str, float]:
    """Milliseconds of processor time for a question, and what the indexes take."""
    graph, words = GraphIndex(folder / "graph.db"), KeywordIndex(folder / "words")
    by_id = {passage.id: passage for passage in passages}
    built = seconds(lambda: [graph.apply(upsert=batch, delete=[]) for batch in batches(passages)])
    words.apply(upsert=passages, delete=[])
    search = MentionGraph(graph, words, lambda ids: [by_id[id_] for id_ in ids if id_ in by_id])
    search.candidates(questions[0])
    taken = [1000 * seconds(lambda question=question: search.candidates(question)) for question in questions]  # type: ignore[misc]
    graph.close()
    return {
        "passages": len(passages),
        "index_s": built,
        "index_mb": (folder / "graph.db").stat().st_size / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "p50_ms": quantile(taken, 0.5),
        "p95_ms": quantile(taken, 0.95),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--added", type=int, default=10_000, help="passages added one by one")
    parser.add_argument("--sizes", type=int, nargs="+", default=[6_000, 20_000, 100_000])
    parser.add_argument("--limit", type=int, default=100, help="questions asked at each size")
    args = parser.parse_args()
    corpus = list(rows(args.corpus))
    questions = [row["question"] for row in rows(args.questions)][: args.limit]
    with tempfile.TemporaryDirectory() as scratch:
        result: dict[str, Any] = {"adding": adding(list(grown(corpus, args.added)), Path(scratch)), "asking": []}
        for size in args.sizes:
            print(f"{size} passages", file=sys.stderr)
            folder = Path(scratch) / str(size)
            result["asking"].append(asking(list(grown(corpus, size)), questions, folder))
    first, last = result["asking"][0], result["asking"][-1]
    result["query_ratio"] = {share: last[share] / first[share] for share in ("p50_ms", "p95_ms")}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
