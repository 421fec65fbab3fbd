"""Wall-clock seconds for which a run has worked, recorded in the metadata of its checkpoints.

A checkpoint records the start of its piece of work (a start or a resume) and the seconds of the pieces before it. So a
pause between a stop and a resume is not counted, a fork counts its own path, and reading a run gives the same number
every time. The work of a killed process after its last checkpoint is not counted.
"""

import time
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

_BEGAN, _BEFORE = "sleuth_began", "sleuth_seconds_before"


def with_clock(config: RunnableConfig, before: float) -> RunnableConfig:
    """Return a config whose checkpoints count seconds from this moment, after those `before`."""
    return {**config, "metadata": {_BEFORE: before, _BEGAN: time.time()}}


def with_paused_clock(config: RunnableConfig, state: StateSnapshot) -> RunnableConfig:
    """Return a config for a checkpoint that is copied from another one without working."""
    return {**config, "metadata": {_BEFORE: seconds_at(state)}}


def seconds_at(state: StateSnapshot) -> float:
    """Return the seconds that a run had worked at a checkpoint."""
    metadata: dict[str, Any] = dict(state.metadata or {})
    before, began = float(metadata.get(_BEFORE, 0.0)), metadata.get(_BEGAN)
    if began is None or not state.created_at:
        return before
    worked = datetime.fromisoformat(state.created_at).timestamp() - float(began)
    return round(before + max(worked, 0.0), 3)  # a clock that is set back counts nothing
