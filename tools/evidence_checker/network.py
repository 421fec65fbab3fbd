"""The network of the evidence checker, with weights in 8 bits.

A weight matrix is stored as whole numbers from -127 to 127 with one scale for each row; the product of the two replaces
it in the graph. Only the file shrinks to a quarter: sums and products are computed in 32 bits.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.onnx import open_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

NETWORK = "network.onnx"
"""File of the network."""

Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]
Run: TypeAlias = Callable[[Ids, Ids, Ids], tuple[Floats, Floats]]
"""The network: ids, mask and types (rows, length) to logits of tokens (rows, length, 3) and of the whole (rows, 7)."""


def load_network(folder: Path, threads: int | None = None) -> Run:
    """Return the network of a folder, which is loaded at the first call."""

    @cache
    def session() -> "InferenceSession":
        return open_session(folder / NETWORK, threads=threads)

    def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        tokens, whole = session().run(None, inputs)
        return tokens, whole

    return run
