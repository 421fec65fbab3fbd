"""The process in which pages are read: `python -m sleuth.tools.pages.worker MEGABYTES`, started by `reading`.

A page as JSON on each line of standard input; what was read of it on a line of standard output. Whatever ends this
process costs one page.
"""

import json
import logging
import sys

from sleuth.tools.bounds import limit_memory
from sleuth.tools.pages.extract import extract
from sleuth.tools.pages.page import Page


def main() -> None:
    """Reads pages until there are none."""
    limit_memory(int(sys.argv[1]))
    logging.disable()
    for line in sys.stdin:
        given = json.loads(line)
        page = Page(**{**given, "warnings": tuple(given["warnings"])})
        sys.stdout.write(extract(page).to_json() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
