"""Embedding models as ONNX graphs: pooling, batches, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from sleuth.tools.search.vectors.onnx_model import GRAPH, UnsupportedModel, open_onnx

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *["who", "built", "the", "bridge", "over", "a", "river"]]
STATES = np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32)
MOST_TOKENS = 20


def write(folder: Path, name: str, content: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose states are the vectors of its tokens, as sentence-transformers stores one."""
    folder = tmp_path / "model"
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for kind, path in {"Transformer": "", "Pooling": "1"}.items()
    ]
    write(folder, "modules.json", modules)
    write(folder, "1/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    write(folder, "sentence_bert_config.json", {"max_seq_length": MOST_TOKENS})
    write(folder, "config.json", {"model_type": "bert", "pad_token_id": 0})
    tokenizer = Tokenizer(WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    special = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = ["rows", "length"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info("states", TensorProto.FLOAT, [*shape, 8])]
    lookup = helper.make_node("Gather", ["table", "input_ids"], ["states"])
    graph = helper.make_graph([lookup], "model", inputs, outputs, [numpy_helper.from_array(STATES, "table")])
    (folder / GRAPH).parent.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / GRAPH)
    return folder


def expected(text: str, pooling: str) -> np.ndarray[Any, Any]:
    words = ["[CLS]", *text.split()[: MOST_TOKENS - 2], "[SEP]"]
    states = STATES[[WORDS.index(word) for word in words]]
    vector = states.mean(axis=0) if pooling == "mean" else states[0]
    unit: np.ndarray[Any, Any] = vector / np.linalg.norm(vector)
    return unit


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("is_named", [True, False])
def test_vectors_are_pooled_states_of_length_one(model: Path, pooling: str, is_named: bool) -> None:
    flags = {"pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_cls_token": pooling == "cls"}
    write(model, "1/config.json", {"pooling_mode": pooling} if is_named else flags)
    texts = ["", "who", "who built the bridge", "the river " * 30, *("a " * n for n in range(1, 70))]
    vectors = open_onnx(model)(texts)
    assert vectors == pytest.approx(np.stack([expected(text, pooling) for text in texts]), abs=1e-6)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("modules.json", [{"type": "Transformer", "path": ""}], "not an encoder with pooling"),
        ("1/config.json", {"pooling_mode_max_tokens": True}, "its pooling is .*max_tokens"),
        ("1/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "its pooling"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "lower case"),
        ("config_sentence_transformers.json", {"default_prompt_name": "task"}, "a prompt before every text"),
    ],
)
def test_other_models_are_refused_with_the_reason(model: Path, file: str, content: Any, reason: str) -> None:
    write(model, file, content)
    with pytest.raises(UnsupportedModel, match=reason):
        open_onnx(model)


@pytest.mark.parametrize("name", ["modules.json", "tokenizer.json", str(GRAPH)])
def test_missing_file_is_refused(model: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(UnsupportedModel):
        open_onnx(model)
