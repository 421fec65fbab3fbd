"""A subprocess that parses files and web pages, or analyzes passages, within limits of memory and time.

The parent sends one JSON value per line and receives one per line. If the input makes the subprocess crash or exceed a
limit, only that input is lost: the next call starts a new subprocess.

    python -m sleuth.tools.documents.worker TASK BOUNDS
"""

import errno
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from textwrap import shorten
from typing import IO, Any

from sleuth.tools.documents.resource_limits import Bounds, limit_memory, limit_processor, peak_megabytes
from sleuth.tools.errors import SleuthError, StoreError

_OUT_OF_MEMORY = 70
"""Exit status of a worker that reached its memory limit."""
_FULL_SHARE = 0.25
"""A worker that has used this share of its memory limit is replaced by a new one."""
_REASON_CHARS = 200


class WorkerError(Exception):
    """The worker ended without a reply; the message is the reason, of which the input is the subject."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class Worker:
    """One subprocess at a time, started when it is needed. Methods block: call them in a thread."""

    def __init__(self, task: str, bounds: Bounds) -> None:
        """Set the function to call, after the name of its module and a dot, and the limits of one call.

        These are `bounds.seconds` of processor time and `bounds.megabytes`.
        """
        self.bounds = bounds
        self._task = task
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._closed = False

    def call(self, request: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        """Run the task on one input.

        Args:
            request: the task's input; a JSON object.
            seconds: the most wall-clock time that the call may take.

        Returns:
            The task's result, or `{"error": message}` if it raised a SleuthError.

        Raises:
            WorkerError: the subprocess ended without a reply.
            StoreError: the worker is closed.
        """
        process = self._started()
        assert process.stdin and process.stdout
        start = time.monotonic()
        timer = threading.Timer(seconds, _kill, [process])
        timer.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        finally:
            timer.cancel()
            timer.join()
        if not reply.endswith(b"\n"):  # incomplete: the process has ended
            if time.monotonic() - start >= seconds:
                error = WorkerError(f"takes longer than {seconds:g} s", "Leave it out.")
            else:
                error = self._error(process.wait())
            self.stop()
            raise error
        result: dict[str, Any] = json.loads(reply)
        if result.pop("full"):
            self.stop()
        return result

    def stop(self) -> None:
        """End the subprocess and its children; the next call starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        for stream in (process.stdin, process.stdout, self._errors):
            if stream is not None:
                stream.close()

    def close(self) -> None:
        """End the subprocess for good, also while another thread waits for its reply."""
        self._closed = True
        if self._process is not None:
            _kill(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._closed:
            raise StoreError("The collection is closed.")
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
            # -P: import nothing from the working directory. A new session: the children of the worker end with it, and
            # Ctrl-C in a terminal does not reach it.
            module = ["-P", "-m", "sleuth.tools.documents.worker"]
            self._process = subprocess.Popen(  # noqa: S603 - no argument comes from the input
                [sys.executable, *module, self._task, json.dumps(asdict(self.bounds))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")},
                start_new_session=True,
            )
        return self._process

    def _error(self, status: int) -> WorkerError:
        if status == _OUT_OF_MEMORY:
            return WorkerError(
                f"takes more than {self.bounds.megabytes:,} MB to read", "Split it, or raise SLEUTH_FILE_MEGABYTES."
            )
        if status == -signal.SIGXCPU:
            return WorkerError(
                f"takes more than {self.bounds.seconds:,} s to read", "Split it, or raise SLEUTH_FILE_SECONDS."
            )
        remedy = "Save it again, or leave it out."
        if status < 0:
            return WorkerError(f"crashes the parser ({signal.Signals(-status).name})", remedy)
        assert self._errors
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines() or ["no reason given"]
        return WorkerError(f"cannot be read ({shorten(lines[-1], _REASON_CHARS, placeholder=' …')})", remedy)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(task: str, bounds: Bounds) -> None:
    """Serve the parent's calls until it closes standard input."""
    module, _, name = task.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    limit_memory(bounds.megabytes)
    logging.disable()
    # Output that a parser prints goes to standard error, so that it does not mix with the replies.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        for line in sys.stdin.buffer:
            limit_processor(bounds.seconds)
            try:
                try:
                    result = function(json.loads(line), bounds)
                except SleuthError as error:
                    result = {"error": str(error)}
                reply = json.dumps({**result, "full": peak_megabytes() > _FULL_SHARE * bounds.megabytes}).encode()
            except (MemoryError, SystemError, OSError) as error:  # Python itself raises the second without memory
                if isinstance(error, OSError) and error.errno != errno.ENOMEM:
                    raise
                os._exit(_OUT_OF_MEMORY)
            out.write(reply + b"\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1], Bounds(**json.loads(sys.argv[2])))
