"""BERT models built without torch: their vectors, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from sleuth.tools.search.vectors.openvino import load_compiled
from sleuth.tools.search.vectors.openvino_bert import write_bert
from sleuth.tools.search.vectors.openvino_files import UnsupportedModel

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *["who", "built", "the", "bridge", "over", "a", "river"]]
WIDTH, LAYERS = 8, 2
TEXTS = ["", "who", "who built the bridge", "the river " * 30]


def write(folder: Path, name: str, content: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A random BERT with two layers, as sentence-transformers stores it."""
    folder = tmp_path / "model"
    kinds = {"Transformer": "", "Pooling": "1"}
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(kinds.items())
    ]
    write(folder, "modules.json", modules)
    write(folder, "1/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    write(folder, "sentence_bert_config.json", {"max_seq_length": 20})
    write(folder, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"})
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 16}
    more = {"max_position_embeddings": 32, "vocab_size": len(WORDS), "type_vocab_size": 2, "pad_token_id": 0}
    write(folder, "config.json", {"model_type": "bert", "architectures": ["BertModel"], **sizes, **more})
    tokenizer = Tokenizer(WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    special = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(weights(), folder / "model.safetensors", {"format": "pt"})
    return folder


def weights() -> dict[str, NDArray[np.float32]]:
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (32, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for layer in range(LAYERS):
        start = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            shapes[f"{start}attention.self.{part}"] = (WIDTH, WIDTH)
        shapes |= {f"{start}attention.output.dense": (WIDTH, WIDTH), f"{start}attention.output.LayerNorm": (WIDTH,)}
        shapes |= {f"{start}intermediate.dense": (16, WIDTH), f"{start}output.dense": (WIDTH, 16)}
        shapes[f"{start}output.LayerNorm"] = (WIDTH,)
    random = np.random.default_rng(0)
    found = {}
    for name, shape in shapes.items():
        if name.endswith(".weight"):
            found[name] = random.normal(size=shape).astype(np.float32)
        else:
            found[f"{name}.weight"] = random.normal(size=shape).astype(np.float32)
            found[f"{name}.bias"] = random.normal(size=shape[0]).astype(np.float32)
    return found


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_equal_those_of_sentence_transformers(model: Path, tmp_path: Path, pooling: str) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the extra torch is not installed")
    write(
        model,
        "1/config.json",
        {"pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_cls_token": pooling == "cls"}
        | {"word_embedding_dimension": WIDTH},
    )
    place = tmp_path / "place"
    place.mkdir()
    write_bert(model, place)
    torch = sentence_transformers.SentenceTransformer(str(model), device="cpu")
    expected = torch.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert np.abs(load_compiled(place)(TEXTS) - expected).max() < 1e-3


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("modules.json", [{"type": "Transformer", "path": ""}], "not an encoder with pooling"),
        ("config.json", {"model_type": "mpnet"}, r"not BERT \(model_type\)"),
        ("config.json", {"model_type": "bert", "hidden_act": "relu"}, r"not BERT \(hidden_act\)"),
        ("config.json", {}, "not BERT"),
        ("1/config.json", {"pooling_mode_max_tokens": True}, "its pooling is pooling_mode_max_tokens"),
        ("1/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "its pooling"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "tokenizer"),
        ("config_sentence_transformers.json", {"default_prompt_name": "task"}, "a prompt before every text"),
    ],
)
def test_other_models_are_refused_with_the_reason(model: Path, file: str, content: Any, reason: str) -> None:
    write(model, file, content)
    with pytest.raises(UnsupportedModel, match=reason):
        write_bert(model, model)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "modules.json"])
def test_missing_file_is_refused(model: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(UnsupportedModel):
        write_bert(model, model)
