"""Folders of the tests, and the path by which subprocesses import their helpers."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHILDREN = ROOT / "tests" / "integration" / "support"
PYTHONPATH = os.pathsep.join(
    str(ROOT / "tests" / folder) for folder in ("support", "graphs/support", "integration/support")
)
