"""A Postgres and a Chroma server for as long as a measurement takes, in temporary folders."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True, kw_only=True)
class Server:
    """`url` as sleuth's settings take it; the process that serves, and where its files are."""

    url: str
    pid: int
    folder: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres() -> Iterator[Server]:
    """Start Postgres without TCP and with initdb's settings; needs initdb and pg_ctl."""
    with tempfile.TemporaryDirectory(prefix="sleuth-pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data = str(Path(folder) / "data")
        _ordinary(_program("initdb"), "-D", data, "-U", "sleuth", "-A", "trust", "-E", "UTF8")
        _ordinary(_program("pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -h ''", "start")
        try:
            pid = int((Path(data) / "postmaster.pid").read_text().split()[0])
            yield Server(url=f"postgresql://sleuth@/postgres?host={folder}", pid=pid, folder=Path(data))
        finally:
            _ordinary(_program("pg_ctl"), "-D", data, "-m", "fast", "stop")


@contextmanager
def chroma() -> Iterator[Server]:
    """Start `chroma run`, which is part of the chromadb package."""
    with tempfile.TemporaryDirectory(prefix="sleuth-chroma-") as folder:
        port = free_port()
        program = str(Path(sys.executable).with_name("chroma"))
        command = [program, "run", "--path", folder, "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{url}/api/v2/heartbeat", process)
            yield Server(url=url, pid=process.pid, folder=Path(folder))
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    sys.exit("the Chroma server ended")


def _program(name: str) -> str:
    """Return a program's path; Debian installs these by version, outside the search path."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = shutil.which(name) or (str(versions[0]) if versions else None)
    return found or sys.exit(f"{name} is not installed: apt-get install postgresql")


def _ordinary(*command: str) -> None:
    """Return options for an unprivileged user, since Postgres refuses to run as root."""
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")
