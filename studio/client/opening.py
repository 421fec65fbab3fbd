"""Who has opened a `Sleuth`: a process and its event loop."""

import asyncio
import os
from dataclasses import dataclass, field

from sleuth.tools.errors import UsageError


@dataclass(frozen=True, slots=True)
class Opener:
    """The event loop and the process that opened connections; of those that create it by default."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    process: int = field(default_factory=os.getpid)

    def is_forked(self) -> bool:
        """Return whether this process is a fork of the one that opened the connections."""
        return os.getpid() != self.process

    def check(self) -> None:
        """Raise UsageError in a forked process: it lacks the threads of the event loop and connections of its own."""
        if self.is_forked():
            raise UsageError(
                f"This Sleuth was opened in process {self.process}, and cannot be used in process {os.getpid()}, "
                "which was forked from it. Call `sleuth.open` in the new process."
            )
