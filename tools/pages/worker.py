"""The process in which pages are read: `python -m sleuth.tools.pages.worker MEGABYTES`, started by `reading`.

A page as JSON on each line of standard input; what was read of it on a line of standard output. Whatever ends this
process costs one page.
"""

import json
import logging
import sys

from sleuth.tools.pages.extract import extract
from sleuth.tools.pages.page import Page


def main() -> None:
    """Reads pages until there are none."""
    _limit_memory(int(sys.argv[1]))
    logging.disable()
    for line in sys.stdin:
        given = json.loads(line)
        page = Page(**{**given, "warnings": tuple(given["warnings"])})
        sys.stdout.write(extract(page).to_json() + "\n")
        sys.stdout.flush()


def _limit_memory(megabytes: int) -> None:
    """A limit on the address space, which only Linux keeps."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


if __name__ == "__main__":
    main()
