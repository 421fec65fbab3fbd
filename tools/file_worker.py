"""The process in which files are read: `python -m sleuth.tools.file_worker BOUNDS`, started by `file_reader`.

A file and the loader classes as JSON on each line of standard input; what was read of it, or why not, on a line of
standard output. Whatever ends this process costs one file.
"""

import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sleuth.tools.bounds import Bounds, limit_memory, limit_processor, peak_megabytes
from sleuth.tools.errors import SleuthError
from sleuth.tools.loaders import load

OUT_OF_MEMORY = 70
"""The exit status of a process that a file has filled."""
_TIRED_SHARE = 0.25
"""Of its memory; a process that has had more of it at once makes room for a fresh one."""


def main() -> None:
    """Reads files until there are none."""
    bounds = Bounds(**json.loads(sys.argv[1]))
    limit_memory(bounds.megabytes)
    logging.disable()
    # What a parser prints must not come between the replies.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        for line in sys.stdin.buffer:
            limit_processor(bounds.seconds)
            try:
                reply = json.dumps(_reply(json.loads(line), bounds), ensure_ascii=False).encode()
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            out.write(reply + b"\n")
            out.flush()


def _reply(given: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """The document's fields, or an `error`; `tired` where this process should read no more."""
    try:
        read = asdict(load(Path(given["path"]), loaders=given["loaders"], bounds=bounds))
    except SleuthError as error:
        read = {"error": str(error)}
    return {**read, "tired": peak_megabytes() > _TIRED_SHARE * bounds.megabytes}


if __name__ == "__main__":
    main()
