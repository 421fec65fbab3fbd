"""Training the SVM that classifies questions, against scikit-learn; and the one that comes with the package."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_embedder import HashingEmbedder

from sleuth.graphs.methods.hybrid_rag.question_attributes import (
    DOMAINS,
    FAST,
    Example,
    LinearSvm,
    SvmPredictor,
    packaged_examples,
    packaged_svm,
)
from sleuth.tools.search.vectors.embedder import LocalEmbedder
from training.attributes import save, train

pytestmark = pytest.mark.nightly

CRAG = Path(__file__).parents[4] / "shared" / "data" / "crag" / "dev10.jsonl.gz"

SUBJECTS = {
    "finance": ["share", "bond", "bank", "dividend"],
    "sports": ["match", "club", "goal", "league"],
    "music": ["song", "album", "singer", "chart"],
    "movie": ["film", "actor", "cinema", "director"],
    "open": ["river", "country", "weather", "animal"],
}
FEW = [
    Example(f"{start} {subject} {number}", domain, dynamic)
    for domain in DOMAINS
    for dynamic, start in ((False, "which was the first"), (True, "which is today the best"))
    for number, subject in enumerate(SUBJECTS[domain] * 3)
]


@pytest.fixture(scope="module")
def trained() -> tuple[LinearSvm, Any]:
    """An SVM of those few questions, and the report of its training."""
    return train(FEW, HashingEmbedder(dimension=64), seed=3)


def decided(svm: LinearSvm, vectors: Any) -> Any:
    """Decision values of all rows: the domains', then that of dynamic."""
    weights = np.vstack([svm.domains, svm.dynamic])
    return np.hstack([vectors, np.ones((len(vectors), 1))]) @ weights.T


def reference(examples: list[Example], vectors: Any, report: Any) -> Any:
    """The same from scikit-learn, with the penalties that were chosen."""
    from sklearn.svm import LinearSVC

    domains = LinearSVC(C=report["domain"]["penalty"], dual=False)
    domains.fit(vectors, [DOMAINS.index(example.domain) for example in examples])
    dynamic = LinearSVC(C=report["dynamic"]["penalty"], dual=False)
    dynamic.fit(vectors, [example.dynamic for example in examples])
    return np.column_stack([domains.decision_function(vectors), dynamic.decision_function(vectors)])


def test_predictions_are_scikit_learn_s(trained: tuple[LinearSvm, Any], tmp_path: Path) -> None:
    embedder, (svm, report) = HashingEmbedder(dimension=64), trained
    save(svm, tmp_path / "svm.npz")
    again = LinearSvm.load(tmp_path / "svm.npz")
    vectors = embedder.embed_passages([example.question for example in FEW]).astype(np.float64)
    wanted = reference(FEW, vectors, report)
    np.testing.assert_allclose(decided(again, vectors), wanted, rtol=0, atol=1e-6)
    for vector, values in zip(vectors, wanted, strict=True):
        found = again.decide(vector)
        assert (found.domain, found.dynamic) == (DOMAINS[int(values[:-1].argmax())], values[-1] > 0)


def test_command_reports_errors_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text("nothing\n", encoding="utf-8")
    command = [sys.executable, "-m", "training.attributes", "own.jsonl", "--out", "svm.npz"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "own.jsonl, line 1: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "svm.npz").exists()


# The package's own


def test_the_package_s_own_is_what_its_questions_give() -> None:
    examples, svm = packaged_examples(), packaged_svm()
    vectors = LocalEmbedder("all-MiniLM-L6-v2").embed_passages([example.question for example in examples])
    report = {"domain": {"penalty": 1.0}, "dynamic": {"penalty": 0.1}}  # as in training/results.md
    wanted = reference(examples, vectors.astype(np.float64), report)
    np.testing.assert_allclose(decided(svm, vectors), wanted, rtol=0, atol=1e-2)


async def test_benchmark_examples_are_predicted_without_training_on_them() -> None:
    if not CRAG.exists():
        pytest.skip(f"{CRAG} is not there")
    with gzip.open(CRAG, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    known = {example.question.lower().rstrip("?") for example in packaged_examples()}
    assert not known & {row["query"].lower().rstrip("?") for row in rows}
    predictor = SvmPredictor(packaged_svm(), LocalEmbedder("all-MiniLM-L6-v2"))
    found = [await predictor.predict(row["query"]) for row in rows]
    assert sum(each.domain == row["domain"] for each, row in zip(found, rows, strict=True)) >= 8
    assert sum(each.dynamic == (row["static_or_dynamic"] in FAST) for each, row in zip(found, rows, strict=True)) >= 9
