"""Tunes until a step, and kills itself there: `python tuning_child.py BASE CHECKPOINT STEP`."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from test_role_tuning import KEY, PLAN, ROWS

from training.roles.tuning.batches import Row
from training.roles.tuning.tune import Tuning, learn


class Deadly(list[Sequence[Sequence[Row]]]):
    """Steps of which one is never taken."""

    def __getitem__(self, at: Any) -> Any:
        if at == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(at)


if __name__ == "__main__":
    learn(Tuning(Path(sys.argv[1]), PLAN), Deadly(PLAN.steps(ROWS)), Path(sys.argv[2]), KEY)
