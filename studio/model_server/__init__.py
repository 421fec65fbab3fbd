"""The embedded models on vLLM's CPU build: installed, downloaded, converted, started and stopped."""

from sleuth.studio.model_server.adapter import CONFIG, PACKAGED, WEIGHTS, fingerprint, merge, rank, resolve_adapters
from sleuth.studio.model_server.convert import Dtype
from sleuth.studio.model_server.flags import ServeOptions, default_dtype, gpu_command
from sleuth.studio.model_server.install import locked_pins, missing_pins
from sleuth.studio.model_server.models import DEFAULT_MODEL, MODELS, ModelName

__all__ = [
    "CONFIG",
    "DEFAULT_MODEL",
    "MODELS",
    "PACKAGED",
    "WEIGHTS",
    "Dtype",
    "ModelName",
    "ServeOptions",
    "default_dtype",
    "fingerprint",
    "gpu_command",
    "locked_pins",
    "merge",
    "missing_pins",
    "rank",
    "resolve_adapters",
]
