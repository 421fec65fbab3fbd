"""Requirements of tests on this machine: free ports, programs and packages."""

import os
import shutil
import socket
from pathlib import Path
from typing import NoReturn

import pytest


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
