"""Convert a sentence-transformers model of any kind for OpenVINO; needs the extra `torch`.

    python -m sleuth.tools.search.vectors.openvino_export FOLDER PLACE

Ends with a status other than 0 and a reason on standard error where the converted model would not be the same.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np

from sleuth.tools.search.vectors.openvino import load_compiled
from sleuth.tools.search.vectors.openvino_files import LENGTH_STEP, MODEL, TOKENIZER, import_openvino

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch.nn import Module

# Below it the converted model is not the same: in bfloat16 the default model keeps .9999.
_FAITHFUL = 0.999
_PROBES = [
    "Who wrote it?",
    "The QUEEN of Île-de-France, 1793-1801.",
    "水の都。 " * 20,
    "a stone bridge over the river " * 100,
]


def compile_model(folder: Path, place: Path) -> str:
    """Write model and tokenizer to `place`; return the reason why they cannot be used, empty if they can."""
    import torch
    from sentence_transformers import SentenceTransformer

    openvino = import_openvino()
    model = SentenceTransformer(str(folder), device="cpu").eval()
    if not model.tokenizer.is_fast:
        return "its tokenizer is not one of the tokenizers library"
    expected = np.asarray(model.encode(_PROBES, normalize_embeddings=True, show_progress_bar=False))
    example = dict(model.tokenizer(_PROBES[:2], padding=True, return_tensors="pt"))
    with torch.no_grad(), catch_warnings():
        simplefilter("ignore")  # the tracer's, of conditions that the comparison below covers
        converted = openvino.convert_model(_whole(model), example_input=example)
    openvino.save_model(converted, place / MODEL, compress_to_fp16=False)
    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.enable_truncation(model.max_seq_length or model.tokenizer.model_max_length)
    pad = {"pad_id": model.tokenizer.pad_token_id, "pad_token": model.tokenizer.pad_token}
    tokenizer.enable_padding(pad_to_multiple_of=LENGTH_STEP, **pad)
    tokenizer.save(str(place / TOKENIZER))
    likeness = float((expected * load_compiled(place)(_PROBES)).sum(axis=1).min())
    return "" if likeness >= _FAITHFUL else f"its vectors would differ (a cosine of {likeness:.4f})"


def _whole(model: "SentenceTransformer") -> "Module":
    """Return the model with its pooling, from token ids to sentence vectors."""
    from torch import Tensor
    from torch.nn import Module

    class Whole(Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
            given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
            found: Tensor = self.model({name: each for name, each in given.items() if each is not None})[
                "sentence_embedding"
            ]
            return found

    return Whole()


if __name__ == "__main__":
    sys.exit(compile_model(Path(sys.argv[1]), Path(sys.argv[2])) or 0)
