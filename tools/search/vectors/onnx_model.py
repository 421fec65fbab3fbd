"""Sentence-transformers models as ONNX graphs, run by onnxruntime without torch.

The graph is `onnx/model.onnx` in the model's folder. The default model has none: its graph comes with this package and
takes the weights from the model's file. Everything here blocks: call it in a thread.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.onnx import as_inputs, open_session, run_session

Vectors: TypeAlias = NDArray[np.float32]
Encode: TypeAlias = Callable[[list[str]], Vectors]

GRAPH = Path("onnx", "model.onnx")
"""File of the graph in a model's folder."""
DEFAULT_GRAPH = Path(__file__).with_name("all-MiniLM-L6-v2.onnx")
"""Graph of the default model, without weights."""
_BATCH = 32
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


class UnsupportedModel(Exception):
    """A model whose vectors only sentence-transformers itself can compute; the message is the reason."""


def open_onnx(folder: Path, *, is_default: bool = False) -> Encode:
    """Return the function that encodes texts as unit vectors with the model in a folder.

    Args:
        folder: the model, as sentence-transformers stores it.
        is_default: whether it is the model for which this package has the graph.

    Raises:
        UnsupportedModel: there is no graph, or the model is not an encoder with mean or [CLS] pooling.
    """
    from tokenizers import Tokenizer

    pool, tokens = _read_pooling(folder), _read_length(folder)
    graph = DEFAULT_GRAPH if is_default else folder / GRAPH
    if not graph.is_file():
        raise UnsupportedModel(f"it has no {GRAPH}")
    if not (folder / "tokenizer.json").is_file():
        raise UnsupportedModel("it has no tokenizer.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(tokens)
    tokenizer.no_padding()
    pad = int(_read(folder / "config.json").get("pad_token_id") or 0)
    session = open_session(graph, weights=_weights(folder) if is_default else None)

    def encode(texts: list[str]) -> Vectors:
        encodings = tokenizer.encode_batch(texts)
        rows: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(texts)
        # Texts of equal length share a batch, which then needs little padding.
        order = sorted(range(len(texts)), key=lambda at: -len(encodings[at]))
        for part in (order[start : start + _BATCH] for start in range(0, len(order), _BATCH)):
            fields = as_inputs([(encodings[at].ids, encodings[at].type_ids) for at in part], pad=pad)
            states = run_session(session, fields)[0]
            for at, vector in zip(part, pool(states, fields["attention_mask"]), strict=True):
                rows[at] = vector
        stacked = np.stack(rows)
        unit: Vectors = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
        return unit

    return encode


def _read_pooling(folder: Path) -> Callable[[Vectors, NDArray[np.int64]], Vectors]:
    """Return the function that makes one vector of a text's states; raise UnsupportedModel for other models."""
    modules: Any = _read(folder / "modules.json")  # a list
    if [module["type"].rpartition(".")[2] for module in modules] not in _MODULES:
        raise UnsupportedModel("it is not an encoder with pooling")
    if _read(folder / "config_sentence_transformers.json").get("default_prompt_name"):
        raise UnsupportedModel("it puts a prompt before every text")
    pooling = _read(folder / modules[1]["path"] / "config.json")
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    match sorted(modes) or pooling.get("pooling_mode"):
        case ["pooling_mode_mean_tokens"] | "mean":
            return _mean
        case ["pooling_mode_cls_token"] | "cls":
            return lambda states, _mask: states[:, 0]
        case other:
            raise UnsupportedModel(f"its pooling is {other}")


def _read_length(folder: Path) -> int:
    """Return the number of tokens that the model reads."""
    sentence = _read(folder / "sentence_bert_config.json")
    if sentence.get("do_lower_case"):
        raise UnsupportedModel("its texts are put in lower case first")
    most = _read(folder / "config.json").get("max_position_embeddings") or 512
    own = _read(folder / "tokenizer_config.json").get("model_max_length") or most
    return int(sentence.get("max_seq_length") or min(most, own))


def _read(file: Path) -> dict[str, Any]:
    """Return the content of a JSON file, empty where there is none."""
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return content


def _weights(folder: Path) -> dict[str, Vectors]:
    from safetensors.numpy import load_file

    tensors = load_file(folder / "model.safetensors")
    unused = ("pooler.", "embeddings.position_ids")
    return {f"encoder.{name}": tensor for name, tensor in tensors.items() if not name.startswith(unused)}


def _mean(states: Vectors, mask: NDArray[np.int64]) -> Vectors:
    vectors: Vectors = np.einsum("rlw,rl->rw", states, mask.astype(np.float32))
    vectors /= mask.sum(axis=1, keepdims=True).clip(1).astype(np.float32)
    return vectors
