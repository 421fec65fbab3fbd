"""Starts, finds and ends the embedded model server; one per SLEUTH_HOME."""

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from filelock import AsyncFileLock, Timeout

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.convert import ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions, serve_command, serve_environment
from sleuth.studio.model_server.process import (
    ModelServerState,
    Process,
    ServerFiles,
    end_session,
    identify,
    is_alive,
    session_members,
)
from sleuth.tools.errors import ModelError, ModelTimeout
from sleuth.tools.settings import client_options

PATIENCE = 600.0  # seconds; compiling on a busy machine takes some minutes


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerStatus:
    """State of the server; `dead`: its process is gone without a stop; `leftovers` counts its remaining processes."""

    state: Literal["running", "starting", "dead", "stopped"]
    log: str
    url: str | None = None
    model: str | None = None
    pid: int | None = None
    started: float | None = None
    options: ServeOptions | None = None
    leftovers: int = 0


async def status(home: Path) -> ServerStatus:
    """Return the present state, within a few seconds."""
    files = ServerFiles(home)
    state = files.read()
    if state is None:
        return ServerStatus(state="stopped", log=str(files.log))
    members = await asyncio.to_thread(session_members, state.process)
    if state.process.pid not in members:
        return ServerStatus(state="dead", options=state.options, leftovers=len(members), log=str(files.log))
    return ServerStatus(
        state="running" if await _is_healthy(state) else "starting",
        log=str(files.log),
        url=state.url,
        model=state.options.model_name,
        pid=state.process.pid,
        started=state.started,
        options=state.options,
    )


async def stop(home: Path) -> int:
    """End the server and everything it started; returns how many processes that were."""
    files = ServerFiles(home)
    state = files.read()
    if state is None:
        return 0
    ended = await end_session(state.process)
    files.state.unlink(missing_ok=True)
    return ended


async def serve(
    home: Path,
    options: ServeOptions,
    report: Report,
    *,
    weights: Path | None = None,
    foreground: bool = False,
    patience: float = PATIENCE,
) -> ServerStatus:
    """Start the server unless it runs, and return when it answers.

    With `foreground` its output goes to standard error, and the caller continues with `attend`. `weights` is the file
    of the model; by default it is downloaded.

    Raises:
        ModelError: not installed, the port is taken, or the server died; with the end of its log.
        ModelUnavailable: the weights cannot be downloaded.
        ModelTimeout: no answer within `patience` seconds.
    """
    files = ServerFiles(home)
    files.prepare()
    try:
        async with AsyncFileLock(files.lock, timeout=patience):
            state = files.read()
            if state is None or not await asyncio.to_thread(is_alive, state.process):
                await _start(files, options, report, weights=weights, foreground=foreground, patience=patience)
            else:
                if state.options != options:
                    report(f"It runs already, with {state.options}. To change that: sleuth model stop")
                await _until_healthy(files, state, patience)
    except Timeout:
        raise ModelTimeout(f"Another process has been starting the model server for {patience:.0f} s.") from None
    return await status(home)


async def attend(home: Path) -> None:
    """Return when the server was stopped, raises ModelError when it died; ends it when the waiting is cancelled."""
    try:
        while (found := await status(home)).state in {"running", "starting"}:  # noqa: ASYNC110 - it gives no event
            await asyncio.sleep(1)
        if found.state == "dead":
            raise ModelError("The model server has ended by itself; the reason is in its output above.")
    finally:
        await stop(home)


async def _start(
    files: ServerFiles,
    options: ServeOptions,
    report: Report,
    *,
    weights: Path | None,
    foreground: bool,
    patience: float,
) -> None:
    """Start the server; leave no process running unless it answers."""
    await stop(files.home)  # what a dead one left behind still holds memory
    if importlib.util.find_spec("vllm") is None:
        raise ModelError("The embedded model server is not installed. Install it with: sleuth model install")
    _check_port(options.port)
    checkpoint = await ensure_checkpoint(files.home, options.checkpoint, report, weights=weights)
    report("Starting vLLM" if foreground else f"Starting vLLM (log: {files.log})")
    # No await until it is written down: nothing may come between, or nobody would know of the process.
    process = _spawn(options, checkpoint, None if foreground else files.log)
    state = ModelServerState(process=process, options=options, started=time.time())
    files.write(state)
    try:
        await _until_healthy(files, state, patience)
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


def _spawn(options: ServeOptions, checkpoint: Path, log: Path | None) -> Process:
    """Start the server in its own session: it outlives this process, ignores its Ctrl-C, and ends with its children."""
    with log.open("wb") if log else nullcontext(sys.stderr.fileno()) as output:
        child = subprocess.Popen(  # noqa: S603 - our own command line, no shell
            serve_command(options, checkpoint),
            env=os.environ | serve_environment(options),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return identify(child.pid)


async def _until_healthy(files: ServerFiles, state: ModelServerState, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not await _is_healthy(state):
        if not await asyncio.to_thread(is_alive, state.process):
            raise ModelError(
                f"The model server ended while starting. The end of its log ({files.log}):\n{files.last_lines()}"
            )
        if time.monotonic() > deadline:
            raise ModelTimeout(f"The model server did not answer within {patience:.0f} s; its log is {files.log}.")
        await asyncio.sleep(0.5)


async def _is_healthy(state: ModelServerState) -> bool:
    async with httpx.AsyncClient(**client_options(), timeout=3) as client:
        try:
            response = await client.get(f"http://127.0.0.1:{state.options.port}/health")
        except httpx.TransportError:
            return False
    return response.is_success
