"""Add up the results of several pytest runs; fail if one failed or reported nothing."""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def main(folder: Path) -> int:
    """Prints the totals of the JUnit files in a folder as the last line; returns the exit status."""
    counts: Counter[str] = Counter()
    for name in ("unit.xml", "sweeps.xml", "integration.xml"):
        file = folder / name
        if not file.is_file():
            counts["failed"] += 1
            sys.stdout.write(f"{file} is missing: that run did not end\n")
            continue
        suite = ElementTree.parse(file).getroot()[0]
        failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        xfailed = len(suite.findall(".//skipped[@type='pytest.xfail']"))
        skipped = int(suite.attrib["skipped"]) - xfailed  # JUnit calls both skipped
        passed = int(suite.attrib["tests"]) - failed - skipped - xfailed
        counts.update(passed=passed, failed=failed, skipped=skipped, xfailed=xfailed)
    sys.stdout.write(", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped", "xfailed")) + "\n")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
