"""The adapter of the embedded model: which one is served, and how it becomes part of the weights."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.studio.model_server.models import DEFAULT_MODEL, PACKAGED, ModelName
from sleuth.tools.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NONE = "none"


def resolve_adapter(name: str | None, model: ModelName = DEFAULT_MODEL) -> str | None:
    """Return the folder of an adapter: the given one, by default the packaged one of the model; None for "none".

    Raises:
        UsageError: the folder has no LoRA adapter.
    """
    if name is None:
        return str(PACKAGED[model]) if model in PACKAGED else None
    if name == NONE:
        return None
    folder = Path(name).resolve()
    if not ((folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()):
        raise UsageError(f"{folder} holds no LoRA adapter ({CONFIG} and {WEIGHTS}); `--adapter none` serves without.")
    return str(folder)


def fingerprint(folder: Path) -> str:
    """Return a hash of everything that determines the merged weights."""
    return sha256((folder / CONFIG).read_bytes() + (folder / WEIGHTS).read_bytes()).hexdigest()


def merge(weights: dict[str, "Tensor"], folder: Path) -> None:
    """Add an adapter to weights, in place: served on a processor of its own it halves the speed."""
    from safetensors.torch import load_file

    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    matrices = load_file(folder / WEIGHTS)
    for name in [name for name in matrices if name.endswith(".lora_A.weight")]:
        layer = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        up = matrices[name.replace(".lora_A.", ".lora_B.")]
        change = up.float() @ matrices[name].float() * (config["lora_alpha"] / config["r"])
        weight = weights[f"{layer}.weight"]
        weight.copy_(weight.float() + change)
