"""Adapters of the embedded model: which one is served, and how one becomes part of the weights."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.agents.graph_encoder import is_graph_model
from sleuth.studio.model_server.models import DEFAULT_MODEL, MODELS, ModelName
from sleuth.tools.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DEMO_NOTICES = {
    model.tuned: f"{model.tuned} is a demo model: {model.expect}. Get a real one: ollama pull qwen3:4b && sleuth init"
    for model in MODELS.values()
    if model.tuned
}
"""What users of an embedded model read, by its name."""
PACKAGED = [model.adapter for model in MODELS.values() if model.adapter]
"""The adapters of the package, each with a model card and thresholds."""
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NONE = "none"


def resolve_adapters(names: list[str] | None, model: ModelName = DEFAULT_MODEL) -> tuple[str, ...]:
    """Return folders of adapters: the given ones, by default the packaged one of the model; "none" means no adapter.

    Raises:
        UsageError: a folder without a LoRA adapter, two of the same name, or a graph model with another adapter.
    """
    if names is None:
        packaged = MODELS[model].adapter
        return (str(packaged),) if packaged else ()
    folders = [Path(name).resolve() for name in names if name != NONE]
    for folder in folders:
        if not ((folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()):
            raise UsageError(
                f"{folder} holds no LoRA adapter ({CONFIG} and {WEIGHTS}); `--adapter none` serves without."
            )
    if len({folder.name for folder in folders}) < len(folders):
        raise UsageError("Adapters are served under the names of their folders, which must differ.")
    graphs = [folder for folder in folders if is_graph_model(folder)]
    if graphs and len(folders) > 1:  # separate adapters together with embeddings in a request crash vLLM's engine
        raise UsageError(
            f"{graphs[0]} is a graph model, which can only be served alone. Remove the other --adapter options."
        )
    return tuple(map(str, folders))


def rank(folder: Path) -> int:
    """Return the rank of an adapter's matrices."""
    return int(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["r"])


def fingerprint(folder: Path) -> str:
    """Return a hash of everything that determines the merged weights."""
    return sha256((folder / CONFIG).read_bytes() + (folder / WEIGHTS).read_bytes()).hexdigest()


def merge(model: "PreTrainedModel", folder: Path) -> None:
    """Add an adapter to the weights of a model, in place: served on a processor of its own it halves the speed."""
    from safetensors.torch import load_file

    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    matrices = load_file(folder / WEIGHTS)
    for name in [name for name in matrices if name.endswith(".lora_A.weight")]:
        layer = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        weight = model.get_parameter(f"{layer}.weight").data
        up = matrices[name.replace(".lora_A.", ".lora_B.")]
        change = up.float() @ matrices[name].float() * (config["lora_alpha"] / config["r"])
        weight.copy_(weight.float() + change)
