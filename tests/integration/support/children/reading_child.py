"""Parse the page on standard input; print the result and the peak memory of the parsing process.

That process is the only child of this one, so the system's count of children is its own: run by `test_pages`.
"""

import asyncio
import json
import resource
import sys

from sleuth.tools.sources.web_pages.page import Page
from sleuth.tools.sources.web_pages.reading import read_pages


def main() -> None:
    """One line of JSON."""
    [page] = asyncio.run(read_pages([Page(html=sys.stdin.read(), snippet="Two ran.")]))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    sys.stdout.write(json.dumps({"text": page.text[:100], "warnings": page.warnings, "bytes": peak}))


if __name__ == "__main__":
    main()
