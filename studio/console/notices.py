"""Notices about models that are too small for what they are asked to do, printed before the first call."""

import re

from sleuth.studio.console.output import progress_console

DEMO_MODELS = {"tiny": "most of its answers are wrong", "small": "about half of its answers are wrong"}
_EMBEDDED = {"tiny": 0.135, "small": 0.5, "medium": 1.5}
"""Billions of parameters of the models that `sleuth model serve` has; their names do not show them."""
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([mb])(?![^\W_])", re.IGNORECASE)
_BILLION = {"m": 0.001, "b": 1.0}
LEAST_BILLIONS = 3.0
"""Parameters from which a model plans a table or an outline that is of use."""


def warn_of_demo(model: str) -> None:
    """Print a notice if a model is one of the demo models."""
    if notice := demo_notice(model):
        _print(notice)


def demo_notice(model: str) -> str:
    """Return what users of a demo model read; empty for another model."""
    if model not in DEMO_MODELS:
        return ""
    return f"{model} is a demo model: {DEMO_MODELS[model]}. Get a real one: ollama pull qwen3:4b && sleuth init"


def warn_of_size(model: str, task: str) -> None:
    """Print a notice if a model's name shows that it is too small for a task, such as "a survey"."""
    size = billions(model)
    if size is not None and size < LEAST_BILLIONS:
        _print(
            f"{model} ({size:g} billion parameters) is too small for {task}: expect empty or wrong results. Use "
            f"one of at least {LEAST_BILLIONS:g} billion: ollama pull qwen3:4b && sleuth init"
        )


def billions(model: str) -> float | None:
    """Return the billions of parameters in the name of a model, or of the base of an embedded one.

    >>> billions("qwen2.5:0.5b-instruct"), billions("tiny"), billions("gpt-5")
    (0.5, 0.135, None)
    """
    if model in _EMBEDDED:
        return _EMBEDDED[model]
    sizes = _SIZE.findall(model)
    return float(sizes[-1][0]) * _BILLION[sizes[-1][1].lower()] if sizes else None


def _print(notice: str) -> None:
    progress_console().print(notice, style="yellow", soft_wrap=True)
