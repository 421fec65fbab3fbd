"""The network as OpenVINO runs it, with weights in 8 bits.

A weight matrix is stored as whole numbers from -127 to 127 with one scale for each row; the product of the two replaces
it in the graph. Only the files shrink to a quarter: sums and products are computed as before.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.vectors.openvino_files import import_openvino

if TYPE_CHECKING:
    from openvino import CompiledModel, Model

NETWORK = "network.xml"
"""File of the graph; `network.bin` next to it contains the weights."""

Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]
Run: TypeAlias = Callable[[Ids, Ids, Ids], tuple[Floats, Floats]]
"""The network: ids, mask and types (rows, length) to logits of tokens (rows, length, 3) and of the whole (rows, 7)."""

_MATRIX = 4096
_LARGEST = 127


def load_network(folder: Path, threads: int | None = None) -> Run:
    """Return the network of a folder; it is compiled for this processor at the first call."""
    options = {"INFERENCE_NUM_THREADS": threads} if threads else {}

    @cache
    def model() -> "CompiledModel":
        return import_openvino().Core().compile_model(folder / NETWORK, "CPU", options)

    def run(ids: Ids, mask: Ids, types: Ids) -> tuple[Floats, Floats]:
        found = model()({"input_ids": ids, "attention_mask": mask, "token_type_ids": types})
        return found[0], found[1]

    return run


def compress(model: "Model") -> int:
    """Replace the weight matrices of a graph by 8-bit ones; return how many there were."""
    from openvino import Type, opset13

    count = 0
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Constant" or node.get_element_type() != Type.f32:
            continue
        if len(node.shape) != 2 or node.shape[0] * node.shape[1] < _MATRIX:
            continue
        whole, scales = quantize(node.data)
        readers = list(node.output(0).get_target_inputs())
        product = opset13.multiply(opset13.convert(opset13.constant(whole), "f32"), opset13.constant(scales))
        for reader in readers:
            reader.replace_source_output(product.output(0))
        count += 1
    return count


def quantize(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return a matrix as whole numbers and the scale of each row, whose product is close to it."""
    scales = np.maximum(np.abs(weights).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(_LARGEST)
    return np.round(weights / scales).astype(np.int8), scales.astype(np.float32)
