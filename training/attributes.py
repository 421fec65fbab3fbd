"""Train the SVM that classifies questions: `python -m training.attributes [DATA] [--out FILE]`.

Prints the cross-validation as JSON. SLEUTH_EMBEDDER is the embedder; the file belongs to it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from sleuth.graphs.methods.hybrid_rag.question_attributes import DOMAINS, TRAINED, Example, LinearSvm, packaged_examples
from sleuth.studio.cli.app import run_cli
from sleuth.studio.console.output import emit
from sleuth.studio.evaluation.scoring import difference, interval
from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Settings
from training.questions import lines

if TYPE_CHECKING:
    from sklearn.model_selection import GridSearchCV

FOLDS, REPEATS = 5, 3
LEAST = 2 * FOLDS
"""Questions of each domain, static and dynamic, so that each fold of each fold has some."""

_PENALTIES = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
_WIDTHS = [0.25, 0.5, 1.0, 2.0]

Rows = NDArray[np.float64]
Labels = NDArray[np.int64]
Split = tuple[NDArray[np.int64], NDArray[np.int64]]


def save(svm: LinearSvm, file: Path) -> None:
    """Write plain arrays, the same bytes for the same weights."""
    names, labels = np.array(svm.embedder), np.array(DOMAINS)
    try:
        with file.open("wb") as out:
            np.savez(out, domains=svm.domains, dynamic=svm.dynamic, embedder=names, labels=labels)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}.") from error


def train(examples: Sequence[Example], embedder: Embedder, *, seed: int = 0) -> tuple[LinearSvm, dict[str, Any]]:
    """Return the SVM on all questions, and its cross-validation. Takes some minutes.

    The report's `domain` and `dynamic` have the accuracy of a linear and an RBF SVM with their difference, the penalty
    of the SVM on all questions, and counts by label, then by prediction, over all repeats. The penalty is selected
    within each training part. `mistakes` are the questions that were predicted wrongly whenever they were left out.

    Raises:
        UsageError: there are too few questions of some kind.
    """
    _check(examples)
    vectors = embedder.embed_passages([example.question for example in examples]).astype(np.float64)
    domains = np.array([DOMAINS.index(example.domain) for example in examples], dtype=np.int64)
    dynamic = np.array([example.dynamic for example in examples], dtype=np.int64)
    splits = _splits(vectors, [f"{example.domain} {example.dynamic}" for example in examples], seed)
    weights, validated, mistakes = [], [], []
    for names, labels in ((DOMAINS, domains), (("static", "dynamic"), dynamic)):
        fitted = _svms(seed)[0].fit(vectors, labels)
        found, wrong = _validate(names, labels, vectors, splits, seed)
        found["penalty"] = float(fitted.best_params_["C"])
        weights.append(np.hstack([fitted.best_estimator_.coef_, fitted.best_estimator_.intercept_[:, None]]))
        validated.append(found)
        mistakes += [
            {"question": examples[at].question, "label": label, "predicted": other} for at, label, other in wrong
        ]
    svm = LinearSvm(embedder=embedder.name, domains=weights[0], dynamic=weights[1][0])
    sizes = {"questions": len(examples), "embedder": embedder.name, "seed": seed, "folds": FOLDS, "repeats": REPEATS}
    return svm, {**sizes, "domain": validated[0], "dynamic": validated[1], "mistakes": mistakes}


def _check(examples: Sequence[Example]) -> None:
    counted = Counter((example.domain, example.dynamic) for example in examples)
    for domain in DOMAINS:
        for dynamic in (False, True):
            if counted[domain, dynamic] < LEAST:
                kind = f"{'dynamic' if dynamic else 'static'} questions of the domain {domain}"
                raise UsageError(
                    f"There are {counted[domain, dynamic]} {kind}: it takes at least {LEAST} of each kind."
                )


def _splits(vectors: Rows, cells: Sequence[str], seed: int) -> list[list[Split]]:
    """Return the folds of each repeat, stratified by domain and by static or dynamic."""
    from sklearn.model_selection import StratifiedKFold

    return [
        list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed + repeat).split(vectors, cells))
        for repeat in range(REPEATS)
    ]


def _svms(seed: int) -> "tuple[GridSearchCV, GridSearchCV]":
    """Return a linear and an RBF SVM whose parameters are selected by cross-validation."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC, LinearSVC

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    linear = GridSearchCV(LinearSVC(dual=False), {"C": _PENALTIES}, cv=folds)
    return linear, GridSearchCV(SVC(kernel="rbf"), {"C": [1.0, 3.0, 10.0], "gamma": _WIDTHS}, cv=folds)


def _validate(
    names: Sequence[str], labels: Labels, vectors: Rows, splits: list[list[Split]], seed: int
) -> tuple[dict[str, Any], list[tuple[int, str, str]]]:
    """Predict each question when it is left out, once per repeat; also return those never predicted rightly."""
    from sklearn.model_selection import cross_val_predict

    linear, rbf = (
        np.stack([cross_val_predict(model, vectors, labels, cv=folds) for folds in splits]) for model in _svms(seed)
    )
    right, rbf_right = ((each == labels).mean(axis=0).tolist() for each in (linear, rbf))
    pairs = Counter(
        (names[label], names[other]) for repeat in linear for label, other in zip(labels, repeat, strict=True)
    )
    both = list(zip(right, rbf_right, strict=True))
    found = {
        "linear": interval(right, seed=seed),
        "rbf": interval(rbf_right, seed=seed),
        "linear_minus_rbf": difference("linear", "rbf", "accuracy", both, seed=seed),
        "confusion": {label: {other: pairs[label, other] for other in names} for label in names},
    }
    wrong = [(at, names[labels[at]], names[linear[0, at]]) for at in range(len(labels)) if right[at] == 0]
    return found, wrong


def main(
    data: Annotated[Path | None, typer.Argument(help="Labeled questions, JSON Lines; default: the own.")] = None,
    out: Annotated[Path | None, typer.Option(help=f"Where the SVM goes; default: {TRAINED} in SLEUTH_HOME.")] = None,
    seed: Annotated[int, typer.Option(help="Of the folds and the intervals.")] = 0,
) -> None:
    """Train the SVM that classifies questions, and print its cross-validation."""
    settings = Settings()
    svm, report = train(list(lines(data, Example)) if data else packaged_examples(), make_embedder(settings), seed=seed)
    if out is None:
        settings.home.mkdir(parents=True, exist_ok=True)
    save(svm, out or settings.home / TRAINED)
    emit(report, True, "")


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
