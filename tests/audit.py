"""Print the findings of pip-audit; fail on a known vulnerability that is not excepted here with a reason.

python tests/audit.py FOLDER    (with pip-audit's found.json and its output; `make audit` writes both)
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EXCEPTIONS: dict[str, str] = {}
"""Why a vulnerability, by its id or one of its aliases, does no harm here."""


def verdict(found: dict[str, Any], exceptions: Mapping[str, str]) -> tuple[list[str], bool]:
    """The lines to print, and whether nothing but exceptions was found."""
    asked = [each for each in found["dependencies"] if "skip_reason" not in each]
    lines, harmless = [], True
    for dependency in asked:
        for vulnerability in dependency["vulns"]:
            ids = [vulnerability["id"], *vulnerability["aliases"]]
            reason = next((exceptions[name] for name in ids if name in exceptions), None)
            mended = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            harmless = harmless and reason is not None
            about = f"excepted: {reason}" if reason else f"mended in {mended}"
            lines.append(f"{dependency['name']} {dependency['version']}: {', '.join(ids)}; {about}")
    lines.append(f"{len(asked)} of {len(found['dependencies'])} dependencies audited")
    if len(asked) < len(found["dependencies"]):
        lines[-1] += "; this index does not tell of the others"
    return lines, harmless


def main(folder: Path) -> int:
    """Print the verdict; pip-audit leaves an empty file if it could not ask, with the reason in its last line."""
    written = (folder / "found.json").read_text(encoding="utf-8")
    if written:
        lines, harmless = verdict(json.loads(written), EXCEPTIONS)
    else:
        *_, said = (folder / "said").read_text(encoding="utf-8").splitlines() or [""]
        lines, harmless = [f"Not audited: {said}"], True
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if harmless else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
