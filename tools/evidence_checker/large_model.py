"""Weights of the large checker: those of its base with the trained adapter, as whole numbers.

The base is a public encoder of 438 MB; the package has the adapter (Hu et al., 2021) and the graph without weights.
Merged and stored in 8 bits they take 110 MB. The linear layers multiply whole numbers: inputs have 8 bits, and weights
only 7, so that no sum of a processor without AVX-VNNI overflows.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.evidence_checker.checker import NETWORK, SETTINGS, TOKENIZER, WEIGHTS

PACKAGED = Path(__file__).parent / "large"
"""The adapter, the graph, the tokenizer and the settings, as `training.evidence_checker.export` has written them."""
ADAPTER = "adapter.safetensors"
DOWN, UP = "down", "up"
"""Ends of the names of an adapter's matrices (rank, columns) and (rows, rank)."""
WHOLE, SCALES = "whole", "scales"
"""Ends of the names of a matrix in whole numbers and its scales."""
FACTOR, STORED = 63, 127
"""Largest whole number of a matrix that is a factor in 8 bits, and of one that is only stored."""
MATRIX = 4096
"""Numbers from which on a matrix is stored as whole numbers."""
Tensors: TypeAlias = dict[str, NDArray[Any]]
_UNUSED = ("pooler.", "embeddings.position_ids")


def build_large_checker(base: Path, out: Path, packaged: Path = PACKAGED) -> None:
    """Write a checker's folder, from which `EvidenceChecker.load` reads it.

    Args:
        base: the file of the base's weights, `model.safetensors` of all-mpnet-base-v2.
        out: the folder.
        packaged: the folder of the adapter.

        >>> build_large_checker(Path("model.safetensors"), Path("large"))
        >>> EvidenceChecker.load(Path("large")).read("Who built the ferry?", passages).answer
        'Oda Brask'
    """
    from safetensors.numpy import load_file, save_file

    tensors = dict(_merge(load_file(base), load_file(packaged / ADAPTER)))
    partial = out.with_name(f"{out.name}.part")
    partial.mkdir(parents=True, exist_ok=True)
    save_file(tensors, partial / WEIGHTS)
    for name in (NETWORK, TOKENIZER, SETTINGS):
        shutil.copyfile(packaged / name, partial / name)
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)


def _merge(base: Tensors, adapter: Tensors) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the weights by their names in the graph."""
    for name, weight in base.items():
        down, up = (adapter.pop(f"{name}.{end}", None) for end in (DOWN, UP))
        if down is not None and up is not None:
            whole, scales = quantize(weight + up.astype(np.float32) @ down.astype(np.float32), FACTOR)
            yield f"encoder.{name}.{WHOLE}", np.ascontiguousarray(whole.T)
            yield f"encoder.{name}.{SCALES}", scales[:, 0]
        elif not name.startswith(_UNUSED):
            yield from _stored(f"encoder.{name}", weight)
    for name, weight in adapter.items():
        yield from _stored(name, weight.astype(np.float32))


def _stored(name: str, weight: NDArray[np.float32]) -> Iterator[tuple[str, NDArray[Any]]]:
    if weight.ndim > 1 and weight.size >= MATRIX:
        yield from zip((f"{name}.{WHOLE}", f"{name}.{SCALES}"), quantize(weight, STORED), strict=True)
    else:
        yield name, weight


def quantize(weights: NDArray[np.float32], largest: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return a matrix as whole numbers and the scale of each row (rows, 1), whose product is close to it."""
    scales = np.maximum(np.abs(weights).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(largest)
    return np.round(weights / scales).astype(np.int8), scales.astype(np.float32)
