"""The perplexity thresholds that `sleuth calibrate` has fitted, one per model and prompt, in a file of SLEUTH_HOME.

Another model, or another wording of the question that it is asked, has other perplexities: what was fitted for the one
says nothing about the other.
"""

import json
from pathlib import Path
from typing import Any

from sleuth import prompts
from sleuth.agents.verifier import VERIFY
from sleuth.graphs.answer import Threshold
from sleuth.tools.errors import StoreError

FILE = "thresholds.json"


def fitted(home: Path, model: str) -> Threshold | None:
    """The threshold for a model, None where none was fitted; raises StoreError where the file cannot be read."""
    return _read(home / FILE).get(_key(model))


def keep(home: Path, model: str, threshold: Threshold) -> None:
    """Keeps a model's threshold; it holds for runs that are verified from now on."""
    file = home / FILE
    kept = {**_read(file), _key(model): threshold}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    new.replace(file)


def _key(model: str) -> str:
    return f"{model} {VERIFY.prompt} {prompts.load(VERIFY.prompt).version}"


def _read(file: Path) -> dict[str, Threshold]:
    if not file.exists():
        return {}
    try:
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return {key: Threshold(value=float(each["value"]), by=str(each["by"])) for key, each in kept.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file} cannot be read: {error}. Remove it, and fit again: `sleuth calibrate`.") from error
