"""Success of simple shortcuts on questions about synthetic worlds: `python -m benchmarks.worlds_shortcuts FOLDER`.

FOLDER is the output of `python -m training.worlds`. A question that a shortcut answers tests little.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from sleuth.studio.evaluation.scoring import contained, normalise
from sleuth.tools.search import KeywordIndex
from sleuth.tools.types import Passage

Row = dict[str, Any]


def rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


MATCHED = (("single", "absent"), ("namesake_known", "namesake"), ("true_premise", "false_premise"))
"""Types with and without an answer whose questions have the same form."""


def majority(questions: list[Row]) -> dict[str, float]:
    """Share of each type's questions that have its most frequent answer."""
    by_type: dict[str, list[str]] = defaultdict(list)
    for row in questions:
        by_type[row["type"]].append(normalise(row["answer"]))
    return {name: Counter(own).most_common(1)[0][1] / len(own) for name, own in by_type.items()}


def top_passage(corpus: list[Row], questions: list[Row]) -> dict[str, float]:
    """Share of each type whose answer is contained in the passage with the highest keyword score."""
    texts = {row["id"]: f"{row['title']}\n{row['text']}" for row in corpus}
    found: dict[str, list[float]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        index = KeywordIndex(Path(folder))
        passages = [
            Passage(
                id=row["id"], document_id=row["id"], title=row["title"], text=row["text"], start=0, end=len(row["text"])
            )
            for row in corpus
        ]
        index.apply(upsert=passages, delete=[])
        for row in questions:
            [best] = index.search(row["question"], k=1)
            found[row["type"]].append(contained(texts[best[0]], [row["answer"], *row["answer_aliases"]]))
    return {name: mean(values) for name, values in found.items()}


def from_question(questions: list[Row]) -> float:
    """AUC of a classifier that is given the question alone and predicts whether it has an answer; 0.5 is chance."""
    texts, labels = [row["question"] for row in questions], np.array([row["answerable"] for row in questions])
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=2), LogisticRegression(max_iter=1000, C=10))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(model, texts, labels, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(labels, scores))


def main(folder: Path) -> None:
    questions = rows(folder / "complete/questions.jsonl")
    answerable = [row for row in questions if row["answerable"]]
    first, best = majority(answerable), top_passage(rows(folder / "complete/corpus.jsonl"), answerable)
    print("type: most frequent answer / answer in the first passage, percent")
    for name in first:
        print(f"{name}: {100 * first[name]:.1f} / {100 * best[name]:.1f}")
    print("answerable or not, from the question alone, AUC")
    for pair in MATCHED:
        print(f"{' or '.join(pair)}: {from_question([row for row in questions if row['type'] in pair]):.2f}")
    print(f"gaps: {from_question(rows(folder / 'gaps/questions.jsonl')):.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
