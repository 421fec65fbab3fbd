"""vLLM's command lines and environments, as plain values."""

import json
import os
import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sleuth.agents.graph_encoder import is_graph_model
from sleuth.studio.model_server.adapter import fingerprint, resolve_adapter
from sleuth.studio.model_server.models import DEFAULT_MODEL, MODELS, ModelName

Dtype = Literal["bfloat16", "float32", "int8"]
CONTEXT = 8192
RECIPE = 3  # counts up whenever a conversion writes something else
MARKER = "sleuth.json"

# Asked of every vLLM server: P(yes) reads 20 alternatives, the cost table shows cached tokens.
# White space between the tokens of guided JSON costs a small model most of its time.
STRUCTURED = '{"backend": "guidance", "disable_any_whitespace": true}'
COMMON = ("--structured-outputs-config", STRUCTURED, "--max-logprobs", "50", "--enable-prompt-tokens-details")


def count_cores() -> int:
    """Return cores that this process may use, two hardware threads of one core counted once."""
    siblings = Path("/sys/devices/system/cpu")
    cores = set()
    for cpu in os.sched_getaffinity(0):
        file = siblings / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        cores.add(file.read_text().strip() if file.is_file() else str(cpu))
    return len(cores)


def cpu_features() -> list[str]:
    """Return the names of the processor's features, among other words; empty where the system does not list them."""
    file = Path("/proc/cpuinfo")
    return file.read_text(encoding="utf-8").split() if file.is_file() else []


def has_bfloat16(features: Collection[str]) -> bool:
    """Return whether a processor has instructions for bfloat16, such as avx512_bf16 or amx_bf16."""
    return any("bf16" in feature for feature in features)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """Options of the embedded server.

    float32 makes greedy replies repeatable. bfloat16 is 1.6 times as fast on a processor with instructions for it; on
    others, float32 reads prompts five times as fast. int8 needs integer instructions for neural networks
    (`fastest_dtype`). Without `eager` the model is compiled: a quarter faster, but it needs a C++ compiler and up to
    two minutes at the first start. `threads` 0: one per core. `adapter` is the folder of the one that is merged into
    the weights. With a graph model, requests may contain embeddings.
    """

    model: ModelName = DEFAULT_MODEL
    port: int = 8000
    dtype: Dtype = "bfloat16"
    eager: bool = True
    max_model_len: int = CONTEXT
    threads: int = 0
    adapter: str | None = None

    @property
    def model_name(self) -> str:
        """Under which the weights are served: the model's name, marked if the adapter is not the packaged one."""
        if self.adapter == resolve_adapter(None, self.model):
            return self.model
        return f"{self.model}-{'tuned' if self.adapter else 'base'}"

    def checkpoint(self, home: Path) -> Path:
        """Return the folder of the converted model, with weights in int8 or bfloat16."""
        return home / "models" / f"{self.model_name}{'-int8' if self.dtype == 'int8' else ''}"

    def is_converted(self, home: Path) -> bool:
        """Return whether the folder holds what this release would write."""
        try:
            return bool(json.loads((self.checkpoint(home) / MARKER).read_text(encoding="utf-8")) == self.origin())
        except FileNotFoundError:
            return False

    def origin(self) -> dict[str, Any]:
        """Return everything that determines the weights."""
        source = {"recipe": RECIPE, "sha256": MODELS[self.model].sha256, "int8": self.dtype == "int8"}
        return source | ({"adapter": fingerprint(Path(self.adapter))} if self.adapter else {})


def default_options(model: ModelName = DEFAULT_MODEL) -> ServeOptions:
    """Return the options of a model: its packaged adapter, and the type in which this processor computes fastest."""
    return ServeOptions(model=model, dtype=fastest_dtype(model, cpu_features()), adapter=resolve_adapter(None, model))


def fastest_dtype(model: ModelName, features: Collection[str]) -> Dtype:
    """Return the type in which a processor with these features, named as Linux does, computes a model fastest."""
    if model != "tiny" and "avx512_vnni" in features:
        return "int8"
    return "bfloat16" if has_bfloat16(features) else "float32"


def serve_command(options: ServeOptions, checkpoint: Path) -> list[str]:
    """Return the embedded server's command line; `vllm serve` requires a distribution that the CPU build is not."""
    dtype = "bfloat16" if options.dtype == "int8" else options.dtype
    return [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(checkpoint), "--served-model-name", options.model_name),
        *("--host", "127.0.0.1", "--port", str(options.port)),
        *("--dtype", dtype, "--max-model-len", str(options.max_model_len), "--max-num-seqs", "32"),
        # A prompt read in pieces takes back a seeded sample after each, which CPU generators cannot: the engine ends.
        *("--no-enable-chunked-prefill", "--max-num-batched-tokens", str(options.max_model_len)),
        *COMMON,
        *(["--enforce-eager"] if options.eager else []),
        *(["--enable-prompt-embeds"] if options.adapter and is_graph_model(Path(options.adapter)) else []),
    ]


def serve_environment(options: ServeOptions) -> dict[str, str]:
    """Return the environment of vLLM's CPU build."""
    return {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        # The model runs inside the engine's process: one process, ten seconds and 700 MB less.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(options.threads or count_cores()),
        # Threads that wait for each other sleep: spinning ones stop each other when anything else wants the cores.
        "OMP_WAIT_POLICY": "PASSIVE",
        # On CPUs the ahead-of-time cache fails to load and everything is compiled again.
        "VLLM_USE_AOT_COMPILE": "0",
    }


def gpu_command(model: str, *, port: int, gpus: int) -> str:
    """Return a command line for a machine with GPUs, for any model that vLLM supports."""
    several = ["--tensor-parallel-size", str(gpus)] if gpus > 1 else []
    return shlex.join(["vllm", "serve", model, "--port", str(port), *several, *COMMON])
