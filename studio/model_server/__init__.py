"""The embedded default, a small model on vLLM's CPU build: installed, converted, started and stopped."""

from sleuth.studio.model_server.adapter import CONFIG, PACKAGED, WEIGHTS, fingerprint, merge, rank, resolve_adapters
from sleuth.studio.model_server.convert import is_converted
from sleuth.studio.model_server.flags import Dtype, ServeOptions, gpu_command
from sleuth.studio.model_server.install import locked_pins, missing_pins

__all__ = [
    "CONFIG",
    "PACKAGED",
    "WEIGHTS",
    "Dtype",
    "ServeOptions",
    "fingerprint",
    "gpu_command",
    "is_converted",
    "locked_pins",
    "merge",
    "missing_pins",
    "rank",
    "resolve_adapters",
]
