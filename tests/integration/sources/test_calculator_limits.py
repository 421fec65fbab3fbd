"""Resources of hostile expressions, measured in a separate process."""

import json
import subprocess
import sys

import pytest
from folders import CHILDREN
from hostile_expressions import HOSTILE

pytestmark = pytest.mark.integration

CHILD = CHILDREN / "calculating_child.py"
EXPRESSIONS = [expression for kind in HOSTILE.values() for expression in kind]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's peak of memory in /proc")
def test_hostile_expressions_are_refused_within_limits() -> None:
    ended = subprocess.run(
        [sys.executable, CHILD], input=json.dumps(EXPRESSIONS), capture_output=True, text=True, check=True, timeout=120
    )
    taken = dict(zip(EXPRESSIONS, map(json.loads, ended.stdout.splitlines()), strict=True))
    assert {expression: took["value"] for expression, took in taken.items() if took["value"] is not None} == {}
    assert {expression: took["turns"] for expression, took in taken.items() if took["turns"] >= 2e6} == {}
    assert {expression: took["bytes"] for expression, took in taken.items() if took["bytes"] >= 50e6} == {}
