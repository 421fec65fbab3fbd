"""From a model's GGUF file to a checkpoint folder that vLLM serves, with an adapter in the weights if there is one."""

import asyncio
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.adapter import merge
from sleuth.studio.model_server.flags import CONTEXT, MARKER, ServeOptions
from sleuth.studio.model_server.models import MODELS
from sleuth.studio.model_server.weights import ensure_weights, run_python
from sleuth.tools.errors import ModelError

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader
    from transformers import PreTrainedTokenizerBase

PARTIAL = ".converting"
CONFIG = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "num_attention_heads": "attention.head_count",
    "num_hidden_layers": "block_count",
    "num_key_value_heads": "attention.head_count_kv",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}
"""What transformers calls the fields of a GGUF file; the file's names begin with the architecture."""
LAYERS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
"""The same for the tensors of a layer."""
HEADS = {"attn_q": "attention.head_count", "attn_k": "attention.head_count_kv"}
TABLE = "model.embed_tokens.weight"
OUTSIDE = {"token_embd.weight": TABLE, "output.weight": TABLE, "output_norm.weight": "model.norm.weight"}
"""The same for the others. The models were trained with one table for input and output."""
_ROUNDED = {"num_bits": 8, "type": "int", "symmetric": True}
INT8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": _ROUNDED | {"strategy": "channel", "dynamic": False},
            "input_activations": _ROUNDED | {"strategy": "token", "dynamic": True},
        }
    },
}


async def ensure_checkpoint(
    home: Path, options: ServeOptions, report: Report = lambda _: None, *, weights: Path | None = None
) -> Path:
    """Return the folder of the checkpoint, converted in a process of its own, which frees its gigabytes at the end.

    The caller holds the server's lock: one conversion at a time. `weights` is the model's file; by default it is found
    or downloaded.

    Raises:
        ModelUnavailable: the weights cannot be downloaded.
        ModelError: the file is another one, or cannot be converted.
    """
    folder = options.checkpoint(home)
    if not await asyncio.to_thread(options.is_converted, home):
        weights = await ensure_weights(MODELS[options.model], folder.parent, report, file=weights)
        title = "Converting the model to vLLM's format, only this once"
        report(title)
        partial = folder.with_name(PARTIAL)
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)  # of an interrupted conversion
        partial.mkdir(parents=True)
        status, lines = await run_python(
            *("-m", __name__, str(partial), str(weights), json.dumps(asdict(options))),
            on_line=lambda line: report(f"{title}: {line}") if line.endswith(" %") else None,
            HF_HUB_OFFLINE="1",
            TRANSFORMERS_VERBOSITY="error",
            OMP_WAIT_POLICY="PASSIVE",  # as for the server
        )
        if status:
            raise ModelError("The model could not be converted: " + " / ".join(lines[-3:]))
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        partial.rename(folder)
    return folder


def write_checkpoint(target: Path, weights: Path, options: ServeOptions) -> None:
    """Write tokenizer, weights and, last, the marker of a complete checkpoint.

    The weights are read from the file itself: transformers would read its list of tokens three times, and fill a model
    that nobody computes with.
    """
    from gguf import GGUFReader
    from safetensors.torch import save_file
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(weights.parent, gguf_file=weights.name, local_files_only=True)
    if options.model == "tiny":
        _set_pre_tokenizer(tokenizer)
    tokenizer.model_max_length = CONTEXT
    tokenizer.save_pretrained(target)
    reader = GGUFReader(weights)
    tensors = _read_tensors(reader)
    config = _read_config(reader, len(tensors[TABLE]))
    if options.adapter:
        merge(tensors, Path(options.adapter))
    if options.dtype == "int8":
        tensors, config["quantization_config"] = round_weights(tensors), INT8
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    (target / MARKER).write_text(json.dumps(options.origin()), encoding="utf-8")


def _set_pre_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Split numbers as SmolLM2 was trained with.

    Its file asks for "smollm" pre-tokenization (every digit on its own), which transformers does not support: it would
    split differently around line breaks and spaces before numbers.
    """
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _read_tensors(reader: "GGUFReader") -> dict[str, "torch.Tensor"]:
    """Return the weights in bfloat16, by the names of transformers; print the share that is read."""
    import torch
    from gguf import dequantize

    tensors, kind = {}, reader.fields["general.architecture"].contents()
    stored = {tensor.name: tensor for tensor in reader.tensors}
    if "output.weight" in stored:  # rounded to eight bits, and this to five
        del stored["token_embd.weight"]
    for number, tensor in enumerate(stored.values(), start=1):
        values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type))
        heads = HEADS.get(tensor.name.split(".")[-2])
        if kind == "llama" and heads:  # the file has the two numbers of a rotation next to each other
            count = reader.fields[f"llama.{heads}"].contents()
            values = values.reshape(count, -1, 2, values.shape[1]).transpose(1, 2).reshape(values.shape)
        tensors[_name(tensor.name)] = values.to(torch.bfloat16)
        if number * 10 // len(stored) > (number - 1) * 10 // len(stored):
            sys.stdout.write(f"{number * 100 // len(stored)} %\n")
            sys.stdout.flush()
    return tensors


def _name(stored: str) -> str:
    """Return the name that transformers gives a tensor of a GGUF file."""
    if stored in OUTSIDE:
        return OUTSIDE[stored]
    _, number, layer, what = stored.split(".")
    return f"model.layers.{number}.{LAYERS[layer]}.{what}"


def _read_config(reader: "GGUFReader", tokens: int) -> dict[str, Any]:
    """Return the configuration of a model of the architecture llama or qwen2, as transformers reads it."""
    kind = reader.fields["general.architecture"].contents()
    read = {name.removeprefix(f"{kind}."): field.contents for name, field in reader.fields.items()}
    return {name: read[stored]() for name, stored in CONFIG.items()} | {
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "model_type": kind,
        "dtype": "bfloat16",
        "vocab_size": tokens,
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": read["rope.freq_base"]()},
        "bos_token_id": read["tokenizer.ggml.bos_token_id"](),
        "eos_token_id": read["tokenizer.ggml.eos_token_id"](),
    }


def round_weights(tensors: dict[str, "torch.Tensor"]) -> dict[str, "torch.Tensor"]:
    """Return a model with linear layers in int8: a scale for each output, inputs rounded per token while it runs.

    The format (`INT8`) is that of compressed-tensors, which vLLM's CPU build computes with integer instructions. The
    last layer stays as it is: it is the table of the tokens' vectors.
    """
    import torch

    rounded = {}
    for name, tensor in tensors.items():
        if name.endswith("_proj.weight"):
            values = tensor.float()
            scale = values.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
            rounded[name] = (values / scale).round().to(torch.int8)
            rounded[f"{name}_scale"] = scale.to(torch.bfloat16)
        else:
            rounded[name] = tensor
    return rounded


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]), ServeOptions(**json.loads(sys.argv[3])))
