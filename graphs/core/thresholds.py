"""Thresholds that were fitted for a model, one per prompt, in a file of SLEUTH_HOME or of the package.

CRP-RAG's bounds the perplexity of its verifier's answers, RetroRAG's the probability that two answers agree. The
reader's bounds the evidence checker's support of answers: one with less is refused. A threshold holds for one model and
one wording of the prompt only.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sleuth import prompts
from sleuth.agents.roles.judging import CONSISTENCY, VERIFY
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.answer import Threshold
from sleuth.tools.errors import StoreError

FILE = "thresholds.json"
FITTED = {VERIFY.prompt: VERIFY.name, CONSISTENCY.prompt: CONSISTENCY.name, READ.prompt: "default"}
"""The prompts that have a threshold, and the role whose model it holds for."""


def fitted_thresholds(folders: Sequence[Path], model_of: Callable[[str], str]) -> dict[str, Threshold]:
    """Return the thresholds for the roles' models, by prompt; the first folder that has one wins.

    Raises:
        StoreError: a folder's file cannot be read.
    """
    stored = [_read(folder / FILE) for folder in reversed(folders)]
    every = {key: threshold for thresholds in stored for key, threshold in thresholds.items()}
    keys = {prompt: _key(model_of(role), prompt) for prompt, role in FITTED.items()}
    return {prompt: every[key] for prompt, key in keys.items() if key in every}


def store_threshold(home: Path, model: str, prompt: str, threshold: Threshold) -> None:
    """Store a model's threshold for later verifications."""
    file = home / FILE
    thresholds = {**_read(file), _key(model, prompt): threshold}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(thresholds, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(file)


def choose_threshold(explicit: float | None, fitted: Threshold | None, default: Threshold) -> Threshold:
    """Return the threshold of this run: the explicit value, else the fitted one, else the default."""
    return fitted or default if explicit is None else Threshold(value=explicit, by="as set for this run")


def _key(model: str, prompt: str) -> str:
    return f"{model} {prompt} {prompts.load(prompt).version}"


def _read(file: Path) -> dict[str, Threshold]:
    if not file.exists():
        return {}
    try:
        stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return {key: Threshold(value=float(entry["value"]), by=str(entry["by"])) for key, entry in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file} cannot be read: {error}. Remove it, and fit again: `sleuth calibrate`.") from error
