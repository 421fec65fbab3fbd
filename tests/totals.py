"""Adds up the results of several pytest runs; fails when one of them failed or told nothing."""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def main(folder: Path) -> int:
    """Prints the totals of the JUnit files in a folder as the last line; returns the exit status."""
    counts: Counter[str] = Counter()
    for name in ("unit.xml", "integration.xml"):
        file = folder / name
        if not file.is_file():
            counts["failed"] += 1
            sys.stdout.write(f"{file} is missing: that run did not end\n")
            continue
        suite = ElementTree.parse(file).getroot()[0].attrib
        failed = int(suite["failures"]) + int(suite["errors"])
        skipped = int(suite["skipped"])
        counts.update(failed=failed, skipped=skipped, passed=int(suite["tests"]) - failed - skipped)
    sys.stdout.write(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped\n")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
