"""From a model's GGUF file to a checkpoint folder that vLLM serves, with an adapter in the weights if there is one."""

import asyncio
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.adapter import merge
from sleuth.studio.model_server.flags import CONTEXT, MARKER, ServeOptions
from sleuth.studio.model_server.models import MODELS
from sleuth.studio.model_server.weights import ensure_weights, run_python
from sleuth.tools.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PARTIAL = ".converting"


async def ensure_checkpoint(
    home: Path, options: ServeOptions, report: Report = lambda _: None, *, weights: Path | None = None
) -> Path:
    """Return the folder of the checkpoint, converted in a process of its own, so that its gigabytes are given back.

    The caller holds the server's lock: one conversion at a time. `weights` is the model's file; by default it is found
    or downloaded.

    Raises:
        ModelUnavailable: the weights cannot be downloaded.
        ModelError: the file is another one, or cannot be converted.
    """
    folder = options.checkpoint(home)
    if not await asyncio.to_thread(options.is_converted, home):
        weights = await ensure_weights(MODELS[options.model], folder.parent, report, given=weights)
        report("Converting the model to vLLM's format, only this once")
        partial = folder.with_name(PARTIAL)
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)  # of an interrupted conversion
        partial.mkdir(parents=True)
        status, lines = await run_python(
            *("-m", __name__, str(partial), str(weights), json.dumps(asdict(options))),
            HF_HUB_OFFLINE="1",
            TRANSFORMERS_VERBOSITY="error",
        )
        if status:
            raise ModelError("The model could not be converted: " + " / ".join(lines[-3:]))
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        partial.rename(folder)
    return folder


def write_checkpoint(target: Path, weights: Path, options: ServeOptions) -> None:
    """Write tokenizer, weights and, last, the marker of a complete checkpoint."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"gguf_file": weights.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, **source)
    if options.model == "tiny":
        _mend(tokenizer)
    tokenizer.model_max_length = CONTEXT
    tokenizer.save_pretrained(target)
    # Packed GGUF weights cannot be saved: they have to be unpacked while they are read.
    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        weights.parent, dtype=torch.bfloat16, quantization_config=unpacked, **source
    )
    _tie(model)
    if options.adapter:
        merge(model, Path(options.adapter))
    if options.dtype == "int8":
        _save_int8(model, target)
    else:
        model.save_pretrained(target)
    (target / MARKER).write_text(json.dumps(options.origin()), encoding="utf-8")


def _mend(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Split numbers as SmolLM2 was trained with.

    Its file asks for "smollm" pre-tokenization (every digit on its own), which transformers does not know: it would
    split differently around line breaks and spaces before numbers.
    """
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _tie(model: "PreTrainedModel") -> None:
    """Use one table of the tokens' vectors for input and output, as the model was trained.

    A GGUF file has it twice, rounded to five bits for the input and to eight for the output: the better one is kept.
    """
    table, head = (model.get_parameter(f"{name}.weight") for name in ("model.embed_tokens", "lm_head"))
    if table.data_ptr() != head.data_ptr():
        table.data.copy_(head.data)
        model.config.tie_word_embeddings = True
        model.tie_weights()


def _save_int8(model: "PreTrainedModel", target: Path) -> None:
    """Write a model with linear layers in int8: a scale for each output, inputs rounded per token while it runs.

    The format is that of compressed-tensors, which vLLM's CPU build computes with integer instructions. The last layer
    stays as it is: it is the table of the tokens' vectors.
    """
    import torch
    from safetensors.torch import save_file

    layers = {name for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)} - {"lm_head"}
    tensors = {}
    for name, tensor in model.state_dict().items():
        layer = name.removesuffix(".weight")
        if layer in layers and name.endswith(".weight"):
            scale = tensor.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
            tensors[name] = (tensor.float() / scale).round().to(torch.int8)
            tensors[f"{name}_scale"] = scale.to(torch.bfloat16)
        elif name != "lm_head.weight":  # the same as the table of the tokens' vectors
            tensors[name] = tensor.contiguous()
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    rounded = {"num_bits": 8, "type": "int", "symmetric": True}
    config = model.config.to_dict() | {
        "architectures": [type(model).__name__],
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "int-quantized",
            "quantization_status": "compressed",
            "ignore": ["lm_head"],
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": rounded | {"strategy": "channel", "dynamic": False},
                    "input_activations": rounded | {"strategy": "token", "dynamic": True},
                }
            },
        },
    }
    (target / "config.json").write_text(json.dumps(config, indent=1, default=str), encoding="utf-8")
    model.generation_config.save_pretrained(target)


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]), ServeOptions(**json.loads(sys.argv[3])))
