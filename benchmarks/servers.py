"""Servers for as long as a measurement takes: Postgres, Chroma, commands, and functions that serve."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ParamSpec

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

P = ParamSpec("P")


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


def wait_until_up(url: str, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    sys.exit(f"{url} does not come up")


@contextmanager
def serving(serve: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Iterator[int]:
    """Call a module's function that serves in a process of its own; yield its id."""
    process = get_context("spawn").Process(target=serve, args=args, kwargs=kwargs)
    process.start()
    try:
        assert process.pid is not None
        yield process.pid
    finally:
        process.terminate()
        process.join()


def serve_app(app: Starlette, port: int) -> None:
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", ws="none", lifespan="off")


def model_routes() -> list[Route]:
    """Return the routes of a model server that do not depend on its replies."""

    async def models(_request: Request) -> Response:
        return JSONResponse({"data": [{"id": "standin", "max_model_len": 32768}]})

    async def tokenize(request: Request) -> Response:
        body = await request.json()
        return JSONResponse({"count": sum(len(each["content"].split()) for each in body["messages"])})

    return [Route("/v1/models", models), Route("/tokenize", tokenize, methods=["POST"])]


USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}


def completion(choice: dict[str, Any], kind: str = "chat.completion") -> dict[str, Any]:
    """Return a reply, or a part of a streamed one, in OpenAI's format."""
    about = {"id": "1", "object": kind, "created": 0, "model": "standin"}
    return about | {"choices": [{"index": 0, "finish_reason": "stop", "logprobs": None} | choice]}


@contextmanager
def running(command: list[str], log: Path, env: dict[str, str] | None = None) -> Iterator[int]:
    """Run a command that serves; yield its process id."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def postgres(**options: str) -> Iterator[Server]:
    """Start Postgres without TCP and with initdb's settings but these; needs initdb and pg_ctl."""
    with tempfile.TemporaryDirectory(prefix="sleuth-pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data = f"{folder}/data"
        _run_unprivileged("initdb", "-D", data, "-U", "sleuth", "-A", "trust", "-E", "UTF8")
        given = f"-k {folder} -h ''" + "".join(f" -c {name}={value}" for name, value in options.items())
        _run_unprivileged("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", given, "start")
        try:
            pid = int((Path(data) / "postmaster.pid").read_text().split()[0])
            yield Server(url=f"postgresql://sleuth@/postgres?host={folder}", pid=pid, folder=Path(data))
        finally:
            _run_unprivileged("pg_ctl", "-D", data, "-m", "fast", "stop")


@contextmanager
def chroma() -> Iterator[Server]:
    """Start `chroma run`, which is part of the chromadb package."""
    with tempfile.TemporaryDirectory(prefix="sleuth-chroma-") as folder:
        port, data = free_port(), Path(folder) / "data"
        program = str(Path(sys.executable).with_name("chroma"))
        command = [program, "run", "--path", str(data), "--host", "127.0.0.1", "--port", str(port)]
        with running(command, Path(folder) / "log") as pid:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(f"{url}/api/v2/heartbeat")
            yield Server(url=url, pid=pid, folder=data)


def _run_unprivileged(program: str, *options: str) -> None:
    """Run one of Postgres' programs, which refuse to run as root. Debian installs them outside the search path."""
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    versions = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{program}")), reverse=True)
    path = shutil.which(program) or next(iter(versions), None)
    if path is None:
        sys.exit(f"{program} is not installed: apt-get install postgresql")
    subprocess.run([*prefix, path, *options], check=True, stdout=subprocess.DEVNULL, cwd="/")
