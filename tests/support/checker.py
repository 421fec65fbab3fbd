"""A tiny encoder with the real tokenizer, for tests of the evidence checker."""

import shutil
from pathlib import Path

from training.onnx_export import base_folder

TOKENIZER = base_folder() / "tokenizer.json"


def tiny_encoder(folder: Path, family: str = "bert") -> Path:
    """Write a random encoder of two layers as a folder to start from."""
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = AutoConfig.for_model(family, vocab_size=30522, max_position_embeddings=514, **sizes)
    AutoModel.from_config(config, add_pooling_layer=False).save_pretrained(folder)
    shutil.copyfile(TOKENIZER, folder / "tokenizer.json")
    return folder
