"""Add up the results of several pytest runs; fail if one failed or reported nothing.

    python tests/totals.py FOLDER NAME...

reads FOLDER/NAME.xml of each run, and names what was not installed.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

INSTALLED_BY = re.compile(r"apt-get install ([\w .+-]*[\w+-])")


def main(folder: Path, names: list[str]) -> int:
    """Print the totals of the JUnit files in a folder as the last line; return the exit status."""
    counts: Counter[str] = Counter()
    packages: set[str] = set()
    for name in names:
        file = folder / f"{name}.xml"
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
        for skip in suite.iter("skipped"):
            for found in INSTALLED_BY.findall(skip.get("message", "")):
                counts["without"] += 1
                packages.update(found.split())
    if packages:
        sys.stdout.write(
            f"{counts['without']} tests were skipped because programs are not installed; they run after: "
            f"apt-get install {' '.join(sorted(packages))}\n"
        )
    sys.stdout.write(", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped", "xfailed")) + "\n")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
