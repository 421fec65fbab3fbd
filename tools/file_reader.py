"""Files read in a process of their own, which can be given up: a file that ends it is a failure, and the others go on.

All methods block: call them in a thread.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import IO

from sleuth.tools.bounds import BOUNDS, Bounds, shown
from sleuth.tools.errors import DocumentError, StoreError
from sleuth.tools.file_worker import OUT_OF_MEMORY
from sleuth.tools.loaders import NO_LOADERS, LoadedDocument, Loaders, is_plain, load

LIGHT_BYTES = 256 << 10
"""Plain text up to this size is read at once: its time and memory grow with its size alone."""
_REASON_CHARS = 200


class FileReader:
    """One process at a time; a new one after it has ended or was ended."""

    def __init__(self, *, loaders: Loaders = NO_LOADERS, bounds: Bounds = BOUNDS) -> None:
        self._loaders = loaders
        self._bounds = bounds
        self._process: subprocess.Popen[bytes] | None = None
        self._remarks: IO[bytes] | None = None
        self._closed = False

    def read(self, path: Path) -> LoadedDocument:
        """Raises DocumentError with the cause where there is no text to be had from a file within the bounds."""
        if _is_light(path, self._loaders):
            return load(path, loaders=self._loaders, bounds=self._bounds)
        process = self._started()
        reply, in_time = self._ask(process, path)
        if not reply.endswith(b"\n"):
            cause = self._cause(process.wait(), in_time)
            self.stop()
            raise DocumentError(f"{shown(path)}: {cause}")
        read = json.loads(reply)
        if read.pop("tired"):
            self.stop()
        if "error" in read:
            raise DocumentError(read["error"])
        return LoadedDocument(**read)

    def stop(self) -> None:
        """Ends the process, and whatever it has started; the next file starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        _end(process)
        for stream in (process.stdin, process.stdout, self._remarks):
            if stream is not None:
                stream.close()

    def close(self) -> None:
        """Ends the process for good, also while another thread waits for it."""
        self._closed = True
        if self._process is not None:
            _end(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._closed:
            raise StoreError("The library is closed.")
        if self._process is None:
            self._remarks = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
            # -P: no module is loaded from the folder that somebody happens to work in. A session of its own: what it
            # starts ends with it, and keys meant for the person's own program do not reach it.
            self._process = subprocess.Popen(  # noqa: S603 - nothing in it comes from a file
                [sys.executable, "-P", "-m", "sleuth.tools.file_worker", json.dumps(asdict(self._bounds))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._remarks,
                env={name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")},
                start_new_session=True,
            )
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], path: Path) -> tuple[bytes, bool]:
        """A line, or less where the process has ended; and whether it ended by itself."""
        assert process.stdin and process.stdout
        too_late = threading.Event()

        def give_up() -> None:
            too_late.set()
            _end(process)

        watch = threading.Timer(self._bounds.patience, give_up)
        watch.start()
        try:
            process.stdin.write(json.dumps({"path": str(path), "loaders": dict(self._loaders)}).encode() + b"\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        finally:
            watch.cancel()
            watch.join()
        return reply, not too_late.is_set()

    def _cause(self, status: int, in_time: bool) -> str:
        """Why the process has ended, as a line for a person."""
        bounds = self._bounds
        if not in_time:
            return f"was given up after {bounds.patience:g} s. Leave it out."
        if status == OUT_OF_MEMORY:
            return f"takes more than {bounds.megabytes:,} MB to read. Split it, or raise SLEUTH_FILE_MEGABYTES."
        if status == -signal.SIGXCPU:
            return f"takes more than {bounds.seconds:,} s to read. Split it, or raise SLEUTH_FILE_SECONDS."
        if status < 0:
            return f"ends the program that reads it ({signal.Signals(-status).name}). Save it anew, or leave it out."
        return f"cannot be read ({self._last_words()}). Save it anew, or leave it out."

    def _last_words(self) -> str:
        assert self._remarks
        self._remarks.seek(0)
        lines = self._remarks.read().decode("utf-8", "replace").splitlines()
        return shorten(lines[-1] if lines else "no reason given", _REASON_CHARS, placeholder=" …")


def _is_light(path: Path, loaders: Loaders) -> bool:
    """Whether it needs no process of its own; also where there is nothing to open, which is said at once."""
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError:
        return True
    return size == 0 or (is_plain(path, loaders) and size <= LIGHT_BYTES)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
