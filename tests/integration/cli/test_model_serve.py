"""`sleuth model serve` while the server is running; a process that answers `/health` takes its place."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_process import sleuth
from process import free_port

from sleuth.studio.model_server.flags import ServeOptions, default_options
from sleuth.studio.model_server.server import ModelServerState, ServerFiles

SERVER = """
import fcntl, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

fcntl.lockf(running := open(sys.argv[1], "wb"), fcntl.LOCK_EX)
server = HTTPServer(("127.0.0.1", int(sys.argv[2])), Healthy)
print(flush=True)
server.serve_forever()
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[ServeOptions]:
    """The options of a running server of the smallest model."""
    options, files = replace(default_options("tiny"), port=free_port()), ServerFiles(tmp_path)
    files.prepare()
    command = [sys.executable, "-c", SERVER, str(files.running), str(options.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout and process.stdout.readline()
        files.write(ModelServerState(pid=process.pid, options=options, started=4.5))
        yield options
        process.kill()


async def test_server_of_another_model_is_named_and_stays(tmp_path: Path, running: ServeOptions) -> None:
    serve, env = ("model", "serve", "--port", str(running.port)), {"SLEUTH_HOME": str(tmp_path)}
    others = [sleuth(*serve, *other, **env) for other in (("--model", "small"), ("--adapter", "none"))]
    for done in await asyncio.gather(*others):
        assert (done.status, done.out) == (1, "")
        assert f"cannot be served: {running.model_name} is running, in process" in done.err
        assert "Stop it first: sleuth model stop" in done.err
    shown = await sleuth("model", "status", **env)
    assert shown.out.startswith(f"{running.model_name} is running at")


async def test_options_that_a_running_server_lacks_are_named(tmp_path: Path, running: ServeOptions) -> None:
    env, port = {"SLEUTH_HOME": str(tmp_path)}, ("--port", str(running.port))
    same, other = await asyncio.gather(
        sleuth("model", "serve", *port, **env), sleuth("model", "serve", *port, "--threads", "9", **env)
    )
    assert (same.status, other.status) == (0, 0), (same, other)
    assert "already" not in same.out
    assert other.out.startswith(f"{running.model_name} is running at")
    assert "It was already running, with threads=0. To change that, first: sleuth model stop" in other.out
