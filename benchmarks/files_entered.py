"""Own files that a command of sleuth enters, and own modules that it imports.

    python -m benchmarks.files_entered ingest examples/corpus
    python -m benchmarks.files_entered --list ask "Who built the mill?" --method par-rag

A file counts if one of its functions is called outside of an import, in this process.
"""

import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType

import sleuth
from sleuth.studio.cli import main

ROOT = str(Path(sleuth.__file__).parent)


class FilesEntered:
    """A profile function that records the files whose functions are called."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._importing: dict[int, int] = defaultdict(int)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record a call, unless a module is being imported."""
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(ROOT):
            return
        thread = threading.get_ident()
        if frame.f_code.co_name == "<module>":
            self._importing[thread] += 1 if event == "call" else -1
        elif event == "call" and not self._importing[thread]:
            self.files.add(frame.f_code.co_filename)


def run() -> None:
    """Run the command of the arguments, then print the numbers, with `--list` also the files."""
    shows_files = sys.argv[1:2] == ["--list"]
    sys.argv = ["sleuth", *sys.argv[2 if shows_files else 1 :]]
    entered = FilesEntered()
    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        imported = sorted(name for name in sys.modules if name == "sleuth" or name.startswith("sleuth."))
        files = sorted(str(Path(file).relative_to(ROOT)) for file in entered.files)
        print("\n".join(files if shows_files else []), file=sys.stderr)
        print(f"{len(files)} own files entered, {len(imported)} own modules imported", file=sys.stderr)


if __name__ == "__main__":
    run()
