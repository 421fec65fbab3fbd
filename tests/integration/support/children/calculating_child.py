"""Evaluate the expressions on standard input, a JSON list, and report their cost, for `test_calculator_limits`.

Time is measured in turns of an empty loop, about twenty million a second, so that a slow machine changes nothing.

Memory is the peak of the whole process (recorded by Linux) above its initial memory, so that short allocations of C
code count. It never falls, so each expression is also compared with all before it.
"""

import json
import re
import sys
from datetime import date
from pathlib import Path
from time import process_time

from sleuth.tools.sources.calculator import NotCalculable, calculate


def memory(kind: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at most so far."""
    found = re.search(rf"{kind}:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) << 10


LOOP = 100_000


def loop(turns: int) -> float:
    """Seconds of an empty loop."""
    begun = process_time()
    for _ in range(turns):
        pass
    return process_time() - begun


def main() -> None:
    """A line of JSON for each expression."""
    calculate("1 + 1")  # whatever is loaded at the first one
    turns = LOOP / max(loop(LOOP) for _ in range(10))  # in a second
    expressions, at_first = json.load(sys.stdin), memory("VmRSS")
    for expression in expressions:
        begun = process_time()
        try:
            value = calculate(expression, today=date(2024, 3, 1)).text
        except NotCalculable:
            value = None
        took = {"value": value, "turns": (process_time() - begun) * turns, "bytes": memory("VmHWM") - at_first}
        sys.stdout.write(json.dumps(took) + "\n")


if __name__ == "__main__":
    main()
