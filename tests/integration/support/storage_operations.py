"""Does deeds in child processes, and kills them."""

import asyncio
import signal
import time
from dataclasses import dataclass

import storage_child
from preloaded import FORKS
from storage_child import Deed

SECONDS = 300.0
"""Longest wait for a child."""


@dataclass(frozen=True)
class Done:
    """Results that a child acknowledged before its end, whether it finished, and its duration in seconds."""

    names: tuple[str, ...]
    whole: bool
    seconds: float


BREAKS = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
"""How a library ends a process."""


def _do(deed: Deed, kill_after: float | None, may_break: bool) -> Done:
    here, there = FORKS.Pipe()
    process = FORKS.Process(target=storage_child.run, args=(deed, there))
    process.start()
    there.close()
    names: list[str] = []
    began = until = time.monotonic() + SECONDS
    try:
        while here.poll(max(0.0, until - time.monotonic())):
            said = here.recv()
            if said == "running":
                began = time.monotonic()
                until = began + (SECONDS if kill_after is None else kill_after)
            elif said == "done":
                return Done(tuple(names), True, time.monotonic() - began)
            else:
                names.append(said)
        assert kill_after is not None, f"{deed.kind} did not end within {SECONDS} s"
        process.kill()
        while True:  # its earlier output
            names.append(here.recv())
    except (EOFError, ConnectionResetError):
        process.join()
        whole = "done" in names
        broken = may_break and process.exitcode in BREAKS
        assert whole or broken or process.exitcode == -signal.SIGKILL, (
            f"{deed.kind} ended by itself: {process.exitcode}"
        )
        told = [name for name in names if name not in ("running", "done")]
        return Done(tuple(told), whole, time.monotonic() - began)
    finally:
        process.kill()
        process.join()
        process.close()
        here.close()


async def do(deed: Deed, *, kill_after: float | None = None, may_break: bool = False) -> Done:
    """Run an operation to its end, or kill it a number of seconds after its start, or until an allowed failure."""
    return await asyncio.to_thread(_do, deed, kill_after, may_break)
