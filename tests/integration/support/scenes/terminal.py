"""A command in a terminal."""

import os
import pty
import signal
import subprocess
import sys

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

    def wait_for(self, text: str) -> None:
        """Wait until the text is shown after that of the last wait."""
        while (found := self.shown.find(text, self._read)) < 0:
            try:
                self.shown += os.read(self._ours, 4096).decode()
            except OSError:
                pytest.fail(f"it ended without {text!r}: {self.shown}")
        self._read = found + len(text)

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
