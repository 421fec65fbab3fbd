"""BERT models of sentence-transformers as OpenVINO graphs, built from the files of their folder without torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.search.vectors.openvino_files import LENGTH_STEP, MODEL, TOKENIZER, UnsupportedModel, import_openvino

if TYPE_CHECKING:
    from openvino import Node

_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_CONFIG = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_DTYPES = ("float32", "float16")


class _Description(NamedTuple):
    """A model's files: the encoder's configuration, the pooling, and the number of tokens that are read."""

    encoder: dict[str, Any]
    pooling: str
    tokens: int


def write_bert(folder: Path, place: Path) -> None:
    """Write the graph and the tokenizer of the model in `folder` to `place`.

    Raises:
        UnsupportedModel: the model is not BERT with mean or [CLS] pooling, or has prompts or a tokenizer of its own.
    """
    from tokenizers import Tokenizer

    described = _describe(folder)
    weights = _weights(folder)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.enable_truncation(described.tokens)
    pad = int(described.encoder.get("pad_token_id") or 0)
    tokenizer.enable_padding(pad_to_multiple_of=LENGTH_STEP, pad_id=pad, pad_token=tokenizer.id_to_token(pad))
    tokenizer.save(str(place / TOKENIZER))
    openvino = import_openvino()
    inputs, vectors = _Bert(weights, described).build()
    openvino.save_model(openvino.Model([vectors], inputs, "bert"), place / MODEL, compress_to_fp16=False)


def _describe(folder: Path) -> _Description:
    """Read the configuration; raise UnsupportedModel unless the graph would compute the same vectors."""
    modules = json.loads(_text(folder / "modules.json", "[]"))
    if [module["type"].rpartition(".")[2] for module in modules] not in _MODULES:
        raise UnsupportedModel("it is not an encoder with pooling")
    encoder = json.loads(_text(folder / "config.json"))
    sentence = json.loads(_text(folder / "sentence_bert_config.json", "{}"))
    differs = [name for name, wanted in _CONFIG.items() if encoder.get(name, wanted) != wanted]
    if differs or "model_type" not in encoder:
        raise UnsupportedModel(f"its encoder is not BERT ({', '.join(differs) or 'model_type is missing'})")
    if not (folder / TOKENIZER).is_file() or sentence.get("do_lower_case"):
        raise UnsupportedModel("its tokenizer is not one of the tokenizers library")
    if json.loads(_text(folder / "config_sentence_transformers.json", "{}")).get("default_prompt_name"):
        raise UnsupportedModel("it puts a prompt before every text")
    pooling = json.loads(_text(folder / modules[1]["path"] / "config.json"))
    modes = {
        _POOLING.get(name, name) for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True
    }
    mode = "".join(sorted(modes)) or pooling.get("pooling_mode")
    if mode not in _POOLING.values():
        raise UnsupportedModel(f"its pooling is {mode}")
    tokenizer = json.loads(_text(folder / "tokenizer_config.json", "{}"))
    most = min(encoder["max_position_embeddings"], tokenizer.get("model_max_length") or np.inf)
    return _Description(encoder, mode, int(sentence.get("max_seq_length") or most))


def _text(file: Path, default: str | None = None) -> str:
    """Return the text of a file, or the default where there is none."""
    if file.is_file():
        return file.read_text(encoding="utf-8")
    if default is None:
        raise UnsupportedModel(f"{file.name} is missing")
    return default


def _weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    from safetensors import safe_open

    file = folder / "model.safetensors"
    if not file.is_file():
        raise UnsupportedModel(f"{file.name} is missing")
    with safe_open(file, "np") as stored:
        names = [name for name in stored.keys() if not name.endswith("position_ids")]  # noqa: SIM118 - not a mapping
        try:
            found = {name.removeprefix("bert."): stored.get_tensor(name) for name in names}
        except TypeError as error:  # numpy has no bfloat16
            raise UnsupportedModel("its weights are not floats of 32 or 16 bits") from error
    if any(tensor.dtype.name not in _DTYPES for tensor in found.values()):
        raise UnsupportedModel("its weights are not floats of 32 or 16 bits")
    return {name: tensor.astype(np.float32) for name, tensor in found.items()}


class _Bert:
    """BERT (Devlin et al., 2019) with pooling, from token ids to sentence vectors."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], described: _Description) -> None:
        from openvino import opset13

        self._ops: Any = opset13
        self._weights = weights
        self._config = described.encoder
        self._pooling = described.pooling

    def build(self) -> "tuple[list[Node], Node]":
        """Return the inputs, each of shape (rows, length), and the vectors (rows, width)."""
        ops = self._ops
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [ops.parameter([-1, -1], np.int64, name=name) for name in names]
        for node, name in zip(inputs, names, strict=True):
            node.output(0).set_names({name})
        ids, mask, types = inputs
        positions = ops.range(np.int64(0), ops.gather(ops.shape_of(ids), np.int64(1), np.int64(0)), np.int64(1), "i64")
        states = ops.add(self._embedded("word", ids), self._embedded("token_type", types))
        states = self._normalized("embeddings.", ops.add(states, self._embedded("position", positions)))
        seen = ops.convert(mask, "f32")
        hidden = ops.multiply(ops.subtract(np.float32(1), seen), np.finfo(np.float32).min)
        hidden = ops.unsqueeze(hidden, np.array([1, 2]))
        for layer in range(self._config["num_hidden_layers"]):
            states = self._layer(f"encoder.layer.{layer}.", states, hidden)
        return inputs, self._pooled(states, ops.unsqueeze(seen, np.array([2])))

    def _layer(self, name: str, states: "Node", hidden: "Node") -> "Node":
        ops = self._ops
        heads = self._config["num_attention_heads"]
        parts = []
        for part in ("query", "key", "value"):
            whole = self._linear(f"{name}attention.self.{part}.", states)
            split = ops.reshape(whole, np.array([0, 0, heads, self._config["hidden_size"] // heads]), special_zero=True)
            parts.append(ops.transpose(split, np.array([0, 2, 1, 3])))
        found = ops.transpose(ops.scaled_dot_product_attention(*parts, hidden), np.array([0, 2, 1, 3]))
        found = ops.reshape(found, np.array([0, 0, -1]), special_zero=True)
        found = ops.add(self._linear(f"{name}attention.output.dense.", found), states)
        states = self._normalized(f"{name}attention.output.", found)
        found = ops.gelu(self._linear(f"{name}intermediate.dense.", states), "erf")
        return self._normalized(f"{name}output.", ops.add(self._linear(f"{name}output.dense.", found), states))

    def _pooled(self, states: "Node", seen: "Node") -> "Node":
        ops = self._ops
        if self._pooling == "cls":
            return ops.gather(states, np.int64(0), np.int64(1))
        total = ops.reduce_sum(ops.multiply(states, seen), np.array([1]))
        return ops.divide(total, ops.maximum(ops.reduce_sum(seen, np.array([1])), np.float32(1e-9)))

    def _embedded(self, kind: str, ids: "Node") -> "Node":
        return self._ops.gather(self._weights[f"embeddings.{kind}_embeddings.weight"], ids, np.int64(0))

    def _linear(self, name: str, states: "Node") -> "Node":
        product = self._ops.matmul(states, self._weights[f"{name}weight"], False, True)
        return self._ops.add(product, self._weights[f"{name}bias"])

    def _normalized(self, name: str, states: "Node") -> "Node":
        epsilon = self._config.get("layer_norm_eps", 1e-12)
        scaled = self._ops.mvn(states, np.array([-1]), True, epsilon, "inside_sqrt")
        scaled = self._ops.multiply(scaled, self._weights[f"{name}LayerNorm.weight"])
        return self._ops.add(scaled, self._weights[f"{name}LayerNorm.bias"])
