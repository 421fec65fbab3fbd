"""The attribute predictor without a language model: linear SVMs over a sentence embedding (section 4.2).

Predicting takes numpy alone: a decision value is a scalar product. The file holds plain arrays, and reading one runs
nothing that is in it. It belongs to the embedder that it was trained with.
"""

import asyncio
import re
import zipfile
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import StoreError
from sleuth.tools.search.vectors import Embedder, Vectors
from sleuth.tools.sources.question_attributes import DOMAINS, Attributes

_OWN = "svm.npz"
TRAINED = "attributes.npz"
"""The file in SLEUTH_HOME that training writes; it comes before the package's own."""

TRAINING = "python -m training.attributes"

Weights = NDArray[np.float64]


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
    with as_file(files(__package__).joinpath(_OWN)) as file:
        return LinearSvm.load(file)


def find_svm(home: Path, embedder: Embedder | None) -> SvmPredictor | None:
    """Return the SVM for an embedder: the one trained in a home, or the package's own, in this order.

    Blocks: reads files. Raises StoreError where the one in the home cannot be used.
    """
    if embedder is None:
        return None
    trained = home / TRAINED
    known = ([LinearSvm.load(trained)] if trained.exists() else []) + [packaged_svm()]
    fitting = (svm for svm in known if _model_name(svm.embedder) == _model_name(embedder.name))
    return next((SvmPredictor(svm, embedder) for svm in fitting), None)


def _model_name(embedder: str) -> str:
    """Return the model's own name, without organization, folder or endpoint."""
    return re.split(r"[/\\#]", embedder.rstrip("/\\"))[-1].lower()
