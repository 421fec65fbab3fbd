"""A Ray cluster on this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from process import free_port, running

_WORKERS = (b"ray::IDLE", b"ray::read_file", b"ray::analyze", b"ray::embed")
"""Names of processes that wait for a task, or run one."""
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray uses the loopback address instead of the machine's."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    address: str
    process: "subprocess.Popen[bytes]"
    token: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a process needs to connect."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def workers(self) -> list[int]:
        """The processes that run tasks, or wait for one."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and os.getpgid(int(folder.name)) != os.getpgid(0):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    environment = (folder / "environ").read_bytes()
                    if command.startswith(_WORKERS) and self.token.encode() in environment:
                        found.append(int(folder.name))
            except OSError:
                continue
        return found


@contextmanager
def ray_cluster(processors: int = 2) -> Iterator[Cluster]:
    """Run a cluster while the block is open; skip the test if Ray is not installed."""
    pytest.importorskip("ray")
    token = os.urandom(24).hex()
    port = free_port()
    options = {
        "--node-ip-address": "127.0.0.1",
        "--port": str(port),
        "--num-cpus": str(processors),
        "--object-store-memory": "100000000",
        "--include-dashboard": "false",
    }
    given = [part for option in options.items() for part in option]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, **_LOOPBACK}
    with TemporaryDirectory(prefix="ray-") as folder:
        log = Path(folder) / "log"
        command += [*given, "--temp-dir", f"{folder}/r"]

        def has_started() -> bool:
            return b"Ray runtime started" in log.read_bytes()

        with running(command, log, is_up=has_started, environment=environment) as process:
            yield Cluster(f"127.0.0.1:{port}", process, token)
