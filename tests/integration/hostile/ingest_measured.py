"""Ingest a folder in a separate process and print the result as JSON: run by `test_hostile_documents`.

`peak` is the most memory that this process has had, in megabytes; `failures` are the lines that a person sees.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

from sleuth.tools.ingestion.ingestion import IngestProgress, ingest
from sleuth.tools.settings import Settings


def main() -> None:
    """The folder is the argument; the settings come from the environment."""
    failures: list[str] = []

    def note(progress: IngestProgress) -> None:
        if progress.failure:
            failures.append(str(progress.failure))

    report = asyncio.run(ingest([Path(sys.argv[1])], settings=Settings(), on_progress=note))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert peak
    told = {"failures": failures, "warnings": report.warnings, "added": report.added, "passages": report.passages}
    sys.stdout.write(json.dumps({**told, "peak": int(peak[1]) >> 10}))


if __name__ == "__main__":
    main()
