"""The embedded server really started, killed and ended."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from process import free_port

from sleuth.studio.model_server import server
from sleuth.studio.model_server.flags import ServeOptions
from sleuth.tools.errors import ModelError

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm_installed")]

# A process that locks a file, and its child; both only wait.
FAMILY = """
import fcntl, subprocess, sys, time
fcntl.lockf(running := open(sys.argv[1], "wb"), fcntl.LOCK_EX)
subprocess.Popen(["sleep", "60"])
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def options() -> ServeOptions:
    return ServeOptions(port=free_port(), dtype="float32", threads=1)


async def eventually(holds: Callable[[], Awaitable[bool]], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


def assert_ended(leader: int | None) -> None:
    """Assert that no process of a session runs; one that nobody has waited for does not."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = file.read_text().rpartition(")")[2].split()
            assert int(session) != leader or state in "ZX", file


@pytest.mark.nightly
async def test_serve_kill_recover_stop(model_home: Path, options: ServeOptions) -> None:
    try:
        first, second = await asyncio.gather(*(server.serve(model_home, options, print) for _ in range(2)))
        assert first == second == await server.status(model_home)
        assert first.state == "running"
        async with httpx.AsyncClient(trust_env=False) as client:
            listed = (await client.get(f"{first.url}/models")).json()["data"]
        assert [(model["id"], model["max_model_len"]) for model in listed] == [("tiny-base", 8192)]

        os.kill(first.pid, signal.SIGKILL)

        async def is_dead() -> bool:
            return (await server.status(model_home)).state == "dead"

        await eventually(is_dead)
        again = await server.serve(model_home, options, print)
        assert again.state == "running"
        assert again.pid != first.pid
        assert_ended(first.pid)
    finally:
        await server.stop(model_home)
    assert_ended(again.pid)
    assert (await server.status(model_home)).state == "stopped"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", options.port))


@pytest.mark.parametrize("killed", [False, True])
def test_stop_ends_the_server_and_its_children(tmp_path: Path, options: ServeOptions, *, killed: bool) -> None:
    files = server.ServerFiles(tmp_path)
    assert files.read() is None
    files.prepare()
    command = [sys.executable, "-c", FAMILY, str(files.running)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout and leader.stdout.readline()
        files.write(state := server.ModelServerState(pid=leader.pid, options=options, started=4.5))
        assert files.read() == state
        found = asyncio.run(server.status(tmp_path))
        assert (found.state, found.url) == ("starting", f"http://127.0.0.1:{options.port}/v1")
        if killed:
            leader.kill()
            leader.wait()
            assert asyncio.run(server.status(tmp_path)).state == "dead"
        assert asyncio.run(server.stop(tmp_path))
        assert leader.stdout.read() == b"", "a child has it open"
    assert asyncio.run(server.status(tmp_path)).state == "stopped"


async def test_a_start_that_is_interrupted_leaves_nothing(model_home: Path, options: ServeOptions) -> None:
    start = asyncio.create_task(server.serve(model_home, options, print))

    async def is_starting() -> bool:
        return (await server.status(model_home)).state == "starting"

    await eventually(is_starting)
    pid = (await server.status(model_home)).pid
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert_ended(pid)
    assert (await server.status(model_home)).state == "stopped"


@pytest.mark.nightly
async def test_early_exit_shows_the_end_of_the_log(model_home: Path) -> None:
    beyond = ServeOptions(port=free_port(), max_model_len=1_000_000)
    with pytest.raises(ModelError, match="max_model_len"):
        await server.serve(model_home, beyond, print)
    assert (await server.status(model_home)).state == "stopped"


async def test_a_port_in_use_is_named(model_home: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ModelError, match=f"Port {port} .*--port"):
            await server.serve(model_home, ServeOptions(port=port), print)


@pytest.mark.nightly
async def test_server_in_the_foreground_is_ended_by_a_signal(model_home: Path) -> None:
    command = [Path(sys.executable).with_name("sleuth"), "model", "serve", "--foreground", "--adapter", "none"]
    command += ["--dtype", "float32", "--threads", "1", "--port", str(free_port())]
    environment = os.environ | {"SLEUTH_HOME": str(model_home)}
    process = await asyncio.create_subprocess_exec(*command, env=environment)

    async def is_running() -> bool:
        return (await server.status(model_home)).state == "running"

    await eventually(is_running, 300)
    assert (await server.status(model_home)).pid == process.pid
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0
    assert (await server.status(model_home)).state == "stopped"


@pytest.mark.nightly
def test_model_that_cannot_be_downloaded_is_replaced_by_the_installed_one(model_home: Path) -> None:
    unreachable = {"SLEUTH_HOME": str(model_home), "HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    command = [Path(sys.executable).with_name("sleuth"), "model", "serve", "--model", "small", "--threads", "1"]
    try:
        done = subprocess.run(
            [*command, "--port", str(free_port()), "--json"],
            env=os.environ | unreachable,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["model"] == "tiny"
        (line,) = (line for line in done.stderr.splitlines() if "No source of" in line)
        assert line.endswith("use --weights FILE. Serving tiny instead.")
    finally:
        asyncio.run(server.stop(model_home))
