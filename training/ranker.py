"""Train graph search's ranker: `python -m training.ranker TRAIN... --out FILE`.

Needs lightgbm, unlike search itself. The same files and seed give the same model.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from sleuth.studio.cli.app import run_cli
from sleuth.tools.errors import extra
from sleuth.tools.search import Query
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.search import find_candidates
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking import ARRAYS, VERSION, Trees, matrix
from training.questions import TrainingSet, passage_of, read

TREES = 200
FOLDS = 5
_PARAMETERS = {
    "objective": "lambdarank",
    "learning_rate": 0.04,
    "num_leaves": 10,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
}

Recall = dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Candidates that search found for a question of a set: a row of features for each, and which of them are gold.

    `needed` is the number of gold passages, found or not.
    """

    set: str
    ids: tuple[str, ...]
    rows: NDArray[np.float32]
    gold: NDArray[np.bool_]
    needed: int


def pools(known: TrainingSet) -> tuple[list[Pool], tuple[str, ...]]:
    """Search for every question with gold as graph search does, without vectors; and the features' names."""
    passages = {id: passage_of(id, *titled) for id, titled in known.passages.items()}
    found: list[Pool] = []
    names: tuple[str, ...] = ()
    with TemporaryDirectory() as folder:
        index, keywords = GraphIndex(Path(folder) / "graph.db"), KeywordIndex(Path(folder) / "words")
        for each in (index, keywords):
            each.apply(upsert=list(passages.values()), delete=[])
        for row in known.questions:
            asked, candidates = find_candidates(
                Query(text=row["question"]), index, keywords, lambda ids: [passages[id_] for id_ in ids]
            )
            if not (candidates and row["gold_ids"]):
                continue
            rows, names = matrix(asked, candidates)
            ids = tuple(candidate.passage.id for candidate in candidates)
            gold = np.array([id_ in row["gold_ids"] for id_ in ids])
            found.append(Pool(set=row["set"], ids=ids, rows=rows, gold=gold, needed=len(row["gold_ids"])))
        index.close()
    return found, names


def train(
    files: Annotated[list[Path], typer.Argument(help="Training questions with their paragraphs, in JSON Lines.")],
    *,
    out: Annotated[Path, typer.Option(help="The model file to write.")],
    seed: Annotated[int, typer.Option(help="For sampling and folds.")] = 0,
) -> None:
    """Train the ranker on all files, and print its cross-validation as JSON."""
    known = read(files)
    found, names = pools(known)
    trees = grow(found, names, seed=seed, files=files)
    about = np.frombuffer(json.dumps(dict(trees.meta), sort_keys=True).encode(), dtype=np.uint8)
    np.savez_compressed(out, meta=about, **{name: getattr(trees, name) for name in ARRAYS})
    report = {
        "passages": len(known.passages),
        "questions": sum(bool(row["gold_ids"]) for row in known.questions),
        "features": len(names),
        "cross_validated": cross_validate(found, seed=seed),
        "left_out": validate_left_out(found, seed=seed),
        "recall_on_train": recall((pool, trees) for pool in found),
        "bytes": out.stat().st_size,
    }
    typer.echo(json.dumps(report, indent=1))


def grow(found: Sequence[Pool], names: Sequence[str], *, seed: int, files: Sequence[Path] = ()) -> Trees:
    """Boost trees on the pools for lambdarank's objective (Burges, 2010)."""
    with extra("train", "Training"):
        import lightgbm

    data = lightgbm.Dataset(
        np.vstack([pool.rows for pool in found]),
        np.concatenate([pool.gold for pool in found]).astype(int),
        group=[len(pool.gold) for pool in found],
    )
    dump = lightgbm.train({**_PARAMETERS, "seed": seed}, data, TREES).dump_model()
    meta = {
        "features_version": VERSION,
        "features": list(names),
        "seed": seed,
        "questions": len(found),
        "files": {f"{file.parent.name}/{file.name}": sha256(file.read_bytes()).hexdigest() for file in files},
    }
    return _as_arrays([tree["tree_structure"] for tree in dump["tree_info"]], meta)


def cross_validate(found: Sequence[Pool], *, seed: int) -> Recall:
    """Return recall by set where each question was ranked by trees that had not seen its fold."""
    fold = np.random.default_rng(seed).integers(FOLDS, size=len(found))
    ranked: list[tuple[Pool, Trees]] = []
    for at in range(FOLDS):
        trees = grow([pool for pool, own in zip(found, fold, strict=True) if own != at], (), seed=seed)
        ranked += [(pool, trees) for pool, own in zip(found, fold, strict=True) if own == at]
    return recall(ranked)


def validate_left_out(found: Sequence[Pool], *, seed: int) -> Recall:
    """Return recall of each set by trees grown on the other sets alone."""
    result: Recall = {}
    sets = list(dict.fromkeys(pool.set for pool in found))
    for name in sets if len(sets) > 1 else []:
        trees = grow([pool for pool in found if pool.set != name], (), seed=seed)
        result |= recall((pool, trees) for pool in found if pool.set == name)
    return result


def recall(ranked: Iterable[tuple[Pool, Trees]]) -> Recall:
    """Return the mean recall of each set, whose pools are ranked by the trees."""
    shares: dict[str, list[list[float]]] = {}
    for pool, trees in ranked:
        order = np.argsort(-trees.scores(pool.rows), kind="stable")
        own = [float(pool.gold[order[:depth]].sum()) / pool.needed for depth in (2, 5, 20)]
        shares.setdefault(pool.set, []).append(own)
    return {
        name: {f"recall@{depth}": round(100 * float(value), 1) for depth, value in zip((2, 5, 20), mean, strict=True)}
        for name, own in shares.items()
        for mean in [np.mean(own, axis=0)]
    }


def _as_arrays(structures: Sequence[dict[str, Any]], meta: dict[str, Any]) -> Trees:
    """Return LightGBM's nested nodes as one flat list; a leaf points to itself."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def put(node: dict[str, Any]) -> int:
        at = len(nodes)
        nodes.append((0, np.inf, at, at, node.get("leaf_value", 0.0)))
        if "split_feature" in node:
            left, right = put(node["left_child"]), put(node["right_child"])
            nodes[at] = (node["split_feature"], node["threshold"], left, right, 0.0)
        return at

    roots = [put(structure) for structure in structures]
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return Trees(
        roots=np.array(roots, dtype=np.int32),
        feature=np.array(feature, dtype=np.int16),
        threshold=np.array(threshold, dtype=np.float64),
        left=np.array(left, dtype=np.int32),
        right=np.array(right, dtype=np.int32),
        value=np.array(value, dtype=np.float32),
        meta=meta,
    )


if __name__ == "__main__":
    run_cli(lambda: typer.run(train))
