"""Folders of the tests, and the path by which subprocesses import their helpers."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTEGRATION = ROOT / "tests" / "integration" / "support"
CHILDREN = INTEGRATION / "children"
PYTHONPATH = os.pathsep.join(
    str(folder)
    for folder in (
        *(ROOT / "src", ROOT / "tests" / "support", ROOT / "tests" / "graphs" / "support"),
        *(INTEGRATION / part for part in ("servers", "children", "faults", "scenes")),
    )
)
