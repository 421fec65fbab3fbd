"""Whether two evaluations found the same: every number, failure and setting of report.json, but for where it is.

    python benchmarks/same_report.py FOLDER FOLDER

For an evaluation that was killed and resumed, beside one that was not. Prints what differs, and exits with 1 if
anything does.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ELSEWHERE = ("home", "command", "path")


def differences(one: object, other: object, place: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted((one.keys() | other.keys()) - set(ELSEWHERE)):
            yield from differences(one.get(key), other.get(key), f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{place}/{number}")
    elif one != other:
        yield f"{place}: {str(one)[:100]} | {str(other)[:100]}"


if __name__ == "__main__":
    one, other = (json.loads((Path(folder) / "report.json").read_text(encoding="utf-8")) for folder in sys.argv[1:3])
    found = list(differences(one, other))
    print("\n".join(found) or f"the same: {one['methods']['runs']:,} runs")
    sys.exit(1 if found else 0)
