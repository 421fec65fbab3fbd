"""Works out the expressions on standard input, a JSON list, and says what each took: run by `test_calculator_limits`.

Memory is the peak of the whole process (Linux keeps it) beyond what it had at first, so that also what C code takes and
gives back at once is seen; it never falls, so every expression is held against all before it, too.
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


def main() -> None:
    """A line of JSON for each expression."""
    calculate("1 + 1")  # whatever is loaded at the first one
    expressions, at_first = json.load(sys.stdin), memory("VmRSS")
    for expression in expressions:
        begun = process_time()
        try:
            value = calculate(expression, today=date(2024, 3, 1)).text
        except NotCalculable:
            value = None
        took = {"value": value, "seconds": process_time() - begun, "bytes": memory("VmHWM") - at_first}
        sys.stdout.write(json.dumps(took) + "\n")


if __name__ == "__main__":
    main()
