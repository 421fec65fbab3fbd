"""Train the SVM that classifies questions: `python -m training.attributes [DATA] [--out FILE]`.

Prints the cross-validation as JSON. SLEUTH_EMBEDDER is the embedder; the file belongs to it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pydantic import ValidationError
from typing_extensions import TypedDict

from sleuth.studio.cli.app import run_cli
from sleuth.studio.console.output import emit
from sleuth.studio.evaluation.scoring import Difference, Interval, difference, interval
from sleuth.tools.errors import UsageError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.sources.question_attributes import DOMAINS
from sleuth.tools.sources.question_attributes.examples import EXAMPLE, Example, packaged_examples
from sleuth.tools.sources.question_attributes.svm import TRAINED, LinearSvm

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


class Validated(TypedDict):
    """Cross-validation of one attribute; the penalty is selected within each training part.

    `confusion` counts by label, then by prediction, over all repeats; `penalty` is that of the SVM on all questions.
    """

    linear: Interval
    rbf: Interval
    linear_minus_rbf: Difference
    penalty: float
    confusion: dict[str, dict[str, int]]


class Mistake(TypedDict):
    """A question that was predicted wrongly whenever it was left out."""

    question: str
    label: str
    predicted: str


class TrainingReport(TypedDict):
    """Output of the command."""

    questions: int
    embedder: str
    seed: int
    folds: int
    repeats: int
    domain: Validated
    dynamic: Validated
    mistakes: list[Mistake]


def read_examples(path: Path) -> list[Example]:
    """Return a labeled file: one {"question", "domain", "dynamic"} per line.

    Raises:
        UsageError: the file cannot be read, or a line is not such an object.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(f"The labeled questions {path} cannot be read: {error}.") from error
    examples: list[Example] = []
    for number, line in enumerate(lines, start=1):
        try:
            examples += [EXAMPLE.validate_json(line)] if line.strip() else []
        except ValidationError as error:
            raise UsageError(
                f'{path}, line {number}: not a labeled question. Each line is {{"question": "…", "domain": "…", '
                f'"dynamic": true or false}} with a domain of {", ".join(DOMAINS)}.'
            ) from error
    return examples


def save(svm: LinearSvm, file: Path) -> None:
    """Write plain arrays, the same bytes for the same weights."""
    names, labels = np.array(svm.embedder), np.array(DOMAINS)
    try:
        with file.open("wb") as out:
            np.savez(out, domains=svm.domains, dynamic=svm.dynamic, embedder=names, labels=labels)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}.") from error


def train(examples: Sequence[Example], embedder: Embedder, *, seed: int = 0) -> tuple[LinearSvm, TrainingReport]:
    """Return the SVM on all questions, and its cross-validation. Takes some minutes.

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
            Mistake(question=examples[at].question, label=label, predicted=other) for at, label, other in wrong
        ]
    svm = LinearSvm(embedder=embedder.name, domains=weights[0], dynamic=weights[1][0])
    report = TrainingReport(
        questions=len(examples),
        embedder=embedder.name,
        seed=seed,
        folds=FOLDS,
        repeats=REPEATS,
        domain=validated[0],
        dynamic=validated[1],
        mistakes=mistakes,
    )
    return svm, report


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
) -> tuple[Validated, list[tuple[int, str, str]]]:
    """Predict each question when it is left out, once per repeat; also return those never predicted rightly."""
    from sklearn.model_selection import cross_val_predict

    linear, rbf = (
        np.stack([cross_val_predict(model, vectors, labels, cv=folds) for folds in splits]) for model in _svms(seed)
    )
    right, rbf_right = ((each == labels).mean(axis=0).tolist() for each in (linear, rbf))
    pairs = Counter(
        (names[label], names[other]) for repeat in linear for label, other in zip(labels, repeat, strict=True)
    )
    found = Validated(
        linear=interval(right, seed=seed),
        rbf=interval(rbf_right, seed=seed),
        linear_minus_rbf=difference("linear", "rbf", "accuracy", list(zip(right, rbf_right, strict=True)), seed=seed),
        penalty=0.0,
        confusion={label: {other: pairs[label, other] for other in names} for label in names},
    )
    wrong = [(at, names[labels[at]], names[linear[0, at]]) for at in range(len(labels)) if right[at] == 0]
    return found, wrong


def main(
    data: Annotated[Path | None, typer.Argument(help="Labelled questions, JSON Lines; default: the own.")] = None,
    out: Annotated[Path | None, typer.Option(help=f"Where the SVM goes; default: {TRAINED} in SLEUTH_HOME.")] = None,
    seed: Annotated[int, typer.Option(help="Of the folds and the intervals.")] = 0,
) -> None:
    """Train the SVM that classifies questions, and print its cross-validation."""
    settings = Settings()
    svm, report = train(read_examples(data) if data else packaged_examples(), make_embedder(settings), seed=seed)
    if out is None:
        settings.home.mkdir(parents=True, exist_ok=True)
    save(svm, out or settings.home / TRAINED)
    emit(report, True, "")


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
