"""A command in a terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

SLEUTH = [sys.executable, "-X", "faulthandler", "-c", "from sleuth.studio.cli import main; main()"]


class Terminal:
    """A command in a terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | environment, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""
        self._read = 0

    def wait_for(self, text: str, *, seconds: float = 90) -> None:
        """Wait until the text is shown after that of the last wait."""
        assert self._shows(text, seconds), f"{text!r} is not shown within {seconds} s: {self.shown}"

    def _shows(self, text: str, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (found := self.shown.find(text, self._read)) < 0:
            if not select.select([self._ours], [], [], max(0.0, until - time.monotonic()))[0]:
                return False
            try:
                self.shown += os.read(self._ours, 4096).decode()
            except OSError:
                pytest.fail(f"it ended without {text!r}: {self.shown}")
        self._read = found + len(text)
        return True

    def rest(self) -> str:
        """Return everything that is shown until the command ends."""
        with suppress(OSError):  # the terminal is closed
            while read := os.read(self._ours, 4096):
                self.shown += read.decode()
        return self.shown

    def interrupt_until(self, text: str) -> None:
        """Press Ctrl-C, again each second, until the text is shown: one just before readline waits has no effect."""
        for _ in range(60):
            self.interrupt()
            if self._shows(text, 1):
                return
        pytest.fail(f"{text!r} is not shown: {self.shown}")

    def enter(self, line: str) -> None:
        os.write(self._ours, f"{line}\n".encode())

    def end(self, *, interrupted: bool = False) -> int:
        if interrupted:
            self.interrupt()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # prints what it is doing
            self.wait_for("Current thread")
            pytest.fail(self.shown)
        finally:
            os.close(self._ours)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def close_input(self) -> None:
        """Press Ctrl-D at the beginning of a line."""
        os.write(self._ours, b"\x04")
