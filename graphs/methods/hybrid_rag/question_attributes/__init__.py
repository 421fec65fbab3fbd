"""Attributes of a question: its domain, and whether its answer changes with time (CRAG's hybrid system, 4.2).

They are predicted by linear SVMs over a sentence embedding, or by a language model with labeled questions as
demonstrations. The questions of this package are in questions.jsonl; training/README.md describes their origin
and labels. Predicting takes numpy alone: a decision value is a scalar product. The SVM's file holds plain
arrays, and reading one runs nothing that is in it. It belongs to the embedder that it was trained with.
"""

import asyncio
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from sleuth.agents.roles.judging import DOMAINS, Attributes, Demonstrations, Example
from sleuth.tools.errors import StoreError
from sleuth.tools.search.vectors import Embedder, Vectors

FAST = frozenset({"real-time", "fast-changing"})
"""What the benchmark calls questions that count as dynamic; those that are slow-changing or static count as static."""

TRAINED = "attributes.npz"
"""The file in SLEUTH_HOME that training writes; it comes before the package's own."""

TRAINING = "python -m training.attributes"

Weights = NDArray[np.float64]


EXAMPLE = TypeAdapter(Example)


def packaged_examples() -> list[Example]:
    """Return the questions of the package. Blocks: reads a file."""
    lines = Path(__file__).with_name("questions.jsonl").read_text(encoding="utf-8").split("\n")
    return [EXAMPLE.validate_json(line) for line in lines if line.strip()]


DEMONSTRATIONS = 5
"""For each domain, and for static and for dynamic (section 4.2)."""


def select_demonstrations(examples: Iterable[Example], *, each: int = DEMONSTRATIONS) -> Demonstrations:
    """Return `each` examples for every domain, and as many for static and for dynamic; selected by hash.

    Examples of a domain alternate between static and dynamic, and those of static and dynamic alternate between
    domains, so that neither attribute predicts the other.
    """
    drawn = sorted(examples, key=lambda example: sha256(example.question.encode()).hexdigest())
    cells = {
        (domain, dynamic): [each for each in drawn if (each.domain, each.dynamic) == (domain, dynamic)]
        for domain in DOMAINS
        for dynamic in (False, True)
    }
    by_domain = [_mixed([cells[domain, False], cells[domain, True]])[:each] for domain in DOMAINS]
    by_change = [_mixed([cells[domain, dynamic] for domain in DOMAINS])[:each] for dynamic in (False, True)]
    return tuple(_mixed(by_domain)), tuple(_mixed(by_change))


def _mixed(lists: Sequence[Sequence[Example]]) -> list[Example]:
    """Return the first of each list, then the second of each, to the end of the longest."""
    longest = max(map(len, lists))
    return [each[at] for at in range(longest) for each in lists if at < len(each)]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearSvm:
    """Hyperplanes over vectors, the last weight of each being its offset.

    `domains` has a row for each of DOMAINS, of which the greatest decision value wins; `dynamic` is one row, positive
    for dynamic questions.
    """

    embedder: str
    domains: Weights
    dynamic: Weights

    def decide(self, vector: Vectors) -> Attributes:
        """Return the attributes of a question by its embedding."""
        extended = np.append(vector.astype(np.float64), 1.0)
        domain = DOMAINS[int((self.domains @ extended).argmax())]
        return Attributes(domain=domain, dynamic=float(self.dynamic @ extended) > 0)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Load a file that training has written, without unpickling.

        Raises:
            StoreError: the file cannot be read, or has other content.
        """
        try:
            with np.load(file, allow_pickle=False) as arrays:
                embedder, labels = str(arrays["embedder"]), tuple(arrays["labels"].tolist())
                domains, dynamic = arrays["domains"].astype(np.float64), arrays["dynamic"].astype(np.float64)
            if labels != DOMAINS:
                raise ValueError("it has other labels")
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            remedy = f"`{TRAINING}` in a clone of sleuth makes one."
            raise StoreError(f"{file} is not a question classifier ({error}). {remedy}") from error
        return cls(embedder=embedder, domains=domains, dynamic=dynamic)


class SvmPredictor:
    """A predictor that embeds a question and applies the SVM."""

    def __init__(self, svm: LinearSvm, embedder: Embedder) -> None:
        self._svm = svm
        self._embedder = embedder

    async def predict(self, question: str) -> Attributes:
        """Return the attributes of one question, without a model call."""
        vector = await asyncio.to_thread(self._embedder.embed_query, question)
        if len(vector) != (dimension := len(self._svm.dynamic) - 1):
            raise StoreError(
                f"{self._embedder.name} gives vectors of length {len(vector)}, and the SVM that classifies questions "
                f"takes {dimension}: train one with this embedder, by `{TRAINING}` in a clone of sleuth."
            )
        return self._svm.decide(vector)


def packaged_svm() -> LinearSvm:
    """Return the predictor of the package. Blocks: reads a file."""
    return LinearSvm.load(Path(__file__).with_name("svm.npz"))


def find_svm(home: Path | None, embedder: Embedder | None) -> SvmPredictor | None:
    """Return the SVM for an embedder: the one trained in a home, or the package's own, in this order.

    Blocks: reads files. Raises StoreError where the one in the home cannot be used.
    """
    if embedder is None:
        return None
    trained = home / TRAINED if home else None
    svms = ([LinearSvm.load(trained)] if trained and trained.exists() else []) + [packaged_svm()]
    fitting = (svm for svm in svms if _model_name(svm.embedder) == _model_name(embedder.name))
    return next((SvmPredictor(svm, embedder) for svm in fitting), None)


def _model_name(embedder: str) -> str:
    """Return the model's own name, without organization, folder or endpoint."""
    return re.split(r"[/\\#]", embedder.rstrip("/\\"))[-1].lower()
