"""A sentence-transformers model compiled for this processor by OpenVINO: converted once, then used without torch.

BERT models are converted from their files (`openvino_bert`), others by torch with the extra `torch`
(`openvino_export`). Everything here blocks: call it in a thread.
"""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sleuth.tools.errors import MissingExtra
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search.vectors.openvino_bert import write_bert
from sleuth.tools.search.vectors.openvino_files import MODEL, TOKENIZER, UnsupportedModel, import_openvino

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Vectors = NDArray[np.float32]
Encode = Callable[[list[str]], Vectors]

_log = logging.getLogger(__name__)

_BATCH = 32
_REFUSED = "refused.txt"


def open_compiled(folder: Path, cache: Path) -> Encode | None:
    """Return the model in `folder`, converted below `cache` at the first use.

    None, with a warning in the log, if its vectors would differ from those of sentence-transformers: with prompts, with
    its own tokenizer, or of a kind that OpenVINO cannot convert.

    Raises:
        MissingExtra: converting it needs the extra `torch`, which is not installed.
    """
    place = cache / _key(folder)
    if not place.exists():
        # A warning, since those are what an application that has set up no logging shows.
        _log.warning("Compiling the embedding model for this machine. This takes up to a minute, once.")
        _convert(folder, place)
    refused = place / _REFUSED
    if refused.exists():
        why = refused.read_text(encoding="utf-8").strip()
        _log.warning("%s cannot be compiled and runs on torch: %s (remove %s to retry)", folder, why, place)
        return None
    return load_compiled(place)


def load_compiled(place: Path) -> Encode:
    """Return the encoder of the converted model in this folder."""
    from tokenizers import Tokenizer

    openvino = import_openvino()
    tokenizer = Tokenizer.from_file(str(place / TOKENIZER))
    model = openvino.Core().compile_model(place / MODEL, "CPU")
    wanted = {port.get_any_name() for port in model.inputs}
    return lambda texts: _encode(texts, tokenizer, lambda given: model({name: given[name] for name in wanted})[0])


def _encode(texts: list[str], tokenizer: "Tokenizer", run: Callable[[Mapping[str, Any]], Vectors]) -> Vectors:
    """Return unit vectors; texts of similar length share a batch, to reduce padding."""
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    rows: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(texts)
    for start in range(0, len(order), _BATCH):
        part = order[start : start + _BATCH]
        vectors = run(_inputs(tokenizer.encode_batch([texts[at] for at in part])))
        for at, vector in zip(part, vectors, strict=True):
            rows[at] = vector
    stacked = np.stack(rows)
    unit: Vectors = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
    return unit


def _inputs(encodings: list["Encoding"]) -> dict[str, NDArray[np.int64]]:
    fields = {
        "input_ids": [encoding.ids for encoding in encodings],
        "attention_mask": [encoding.attention_mask for encoding in encodings],
        "token_type_ids": [encoding.type_ids for encoding in encodings],
    }
    return {name: np.asarray(values, dtype=np.int64) for name, values in fields.items()}


def _key(folder: Path) -> str:
    """Return a hash of a model's files: a changed model is converted again."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256(f"{folder}{facts}{version('openvino')}".encode()).hexdigest()[:16]


def _convert(folder: Path, place: Path) -> None:
    """Convert atomically: into a temporary folder, then renamed, unless another process was first."""
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(dir=place.parent))
    try:
        try:
            write_bert(folder, scratch)
        except UnsupportedModel as unsupported:
            _convert_by_torch(folder, scratch, str(unsupported))
        if not place.exists():
            scratch.rename(place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _convert_by_torch(folder: Path, scratch: Path, why: str) -> None:
    """Convert in a subprocess, since it needs much memory once; any failure there means that torch is used."""
    if find_spec("sentence_transformers") is None:
        raise MissingExtra(f"The embedding model {folder} needs torch ({why}): pip install '{DISTRIBUTION}[torch]'.")
    command = [sys.executable, "-m", "sleuth.tools.search.vectors.openvino_export", str(folder), str(scratch)]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)  # noqa: S603 - our own module
    if done.returncode:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        (scratch / _REFUSED).write_text(last, encoding="utf-8")
