"""A command in a terminal."""

import os
import signal
import sys
from io import StringIO
from typing import Any

import pexpect
import pytest

SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli import main; main()"]


class Terminal(pexpect.spawn):  # type: ignore[misc]  # pexpect has no types
    """A command in a terminal; `shown` is all that it has printed so far."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        super().__init__(command[0], command[1:], env=os.environ | environment, encoding="utf-8", timeout=90)
        self.logfile_read = StringIO()

    @property
    def shown(self) -> str:
        return str(self.logfile_read.getvalue())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.kill(signal.SIGINT)

    def interrupt_until(self, text: str) -> None:
        """Press Ctrl-C, again each second, until the text is shown: one just before readline waits has no effect."""
        for _ in range(60):
            self.interrupt()
            if self.expect_exact([text, pexpect.TIMEOUT], timeout=1) == 0:
                return
        pytest.fail(f"{text!r} is not shown: {self.shown}")

    def end(self) -> Any:
        """Wait until the command ends; return its exit status."""
        self.expect(pexpect.EOF)
        self.close()
        return self.exitstatus
