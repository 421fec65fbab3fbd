"""Servers as processes of their own, and what tests require of this machine: free ports, programs and packages."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()"]
"""The command in a process of its own, without what is imported here."""


@contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    *,
    is_up: Callable[[], bool],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    end: signal.Signals = signal.SIGTERM,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server that writes to a log; yield when it is up, and end it with its children after the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 300
        while not is_up():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, end)
        with suppress(subprocess.TimeoutExpired):
            process.wait(120)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@asynccontextmanager
async def running_beside(
    command: Sequence[str | Path], log: Path, **more: Any
) -> "AsyncIterator[subprocess.Popen[bytes]]":
    """The same, without blocking the event loop while the server starts and ends."""
    server = running(command, log, **more)
    process = await asyncio.to_thread(server.__enter__)
    try:
        yield process
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


def answers(url: str) -> bool:
    """Return whether a server answers with success."""
    try:
        return httpx.get(url, trust_env=False, timeout=10).is_success
    except httpx.TransportError:
        return False


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it if SLEUTH_REQUIRE_ALL is set: nothing may be skipped then."""
    if os.environ.get("SLEUTH_REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def program(reason: str, *names: str, folder: str = "") -> str:
    """Return the path of the first program that is installed, on the PATH or in the newest folder of a pattern."""
    for name in names:
        folders = sorted(Path("/").glob(folder), reverse=True) if folder else []
        found = shutil.which(name) or next((str(each / name) for each in folders if (each / name).exists()), None)
        if found:
            return found
    missing(reason)


def free_port() -> int:
    """Return a port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
