"""Two servers behind nginx, killed and restarted again and again while they answer questions.

    python -m benchmarks.two_servers [--runs 1000] [--kills 10] [--minutes 60] [--at-once 16] [--embedder none]
        [--json FILE]

Two `sleuth serve` processes share one Postgres and one Chroma server, each with a SLEUTH_HOME of its own. nginx is in
front with `examples/deploy/nginx.conf`. The model server is a mock with the replies of the simulated model; clients ask
the example questions with PAR-RAG. Meanwhile each server is ended `--kills` times, alternately by SIGKILL and SIGTERM,
and started again some seconds later. A client whose connection breaks reconnects with `Last-Event-ID`.

Counts runs that were lost, streams with a missing or repeated event, and model calls that were requested again: those
that were in flight on a server when it ended, those whose reply had been received shortly before, and others. Prints
JSON; exits with 1 if a run was lost, a stream is incomplete, or a call was repeated more than `--slack` seconds after
its reply.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import sleuth
from benchmarks.harness import EXAMPLES, append_line, in_own_process, read_lines, write_json
from benchmarks.servers import (
    USAGE,
    chroma,
    completion,
    free_port,
    model_routes,
    postgres,
    running,
    serve_app,
    serving,
    wait_until_up,
)
from benchmarks.throughput import Replies, key, simulated
from sleuth.graphs.ingestion.pipeline import ingest

METHOD = "par-rag"
DELAY = 0.05
"""Seconds that the mock model server takes for a reply."""

COMMAND = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()", "serve"]
CERTIFICATE = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=sleuth.example"]
HTTP = "daemon off;\npid {0}/pid;\nevents {{}}\nhttp {{ access_log off; include {0}/sleuth.conf; }}\n"
TEMPORARY = "".join(f"{name}_temp_path {{0}}/{name};\n" for name in ("client_body", "proxy"))


def serve_model(replies: Replies, port: int, log: Path) -> None:
    """Run the mock model server, which logs each call with its times; the path names the server that calls it."""

    async def chat(request: Request) -> Response:
        body = await request.json()
        entry: dict[str, Any] = {
            "server": request.path_params["server"],
            "call": request.headers.get("x-sleuth-call", ""),
        }
        entry["arrived"] = time.time()
        await asyncio.sleep(DELAY)
        message = {"role": "assistant", "content": replies.get(key(body["messages"]), '{"ready":true}')}

        def note() -> None:
            append_line(log, entry | {"replied": time.time()})

        reply = completion({"message": message}) | {"usage": USAGE}
        return JSONResponse(reply, background=BackgroundTask(note))

    routes = [Route("/{server}" + route.path, route.endpoint, methods=route.methods) for route in model_routes()]
    serve_app(Starlette(routes=[*routes, Route("/{server}/v1/chat/completions", chat, methods=["POST"])]), port)


@contextmanager
def nginx(folder: Path, ports: list[int]) -> Iterator[str]:
    """Run nginx with the example configuration in front of servers; yield its address."""
    names = [
        "-keyout",
        str(folder / "privkey.pem"),
        "-out",
        str(folder / "fullchain.pem"),
        "-subj",
        "/CN=sleuth.example",
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names], check=True, capture_output=True
    )
    plain, secure = free_port(), free_port()
    text = (EXAMPLES / "deploy" / "nginx.conf").read_text()
    for old, new in {
        "/etc/letsencrypt/live/sleuth.example": str(folder),
        "    server 127.0.0.1:8100 fail_timeout=2s;": "\n".join(
            f"    server 127.0.0.1:{port} fail_timeout=2s;" for port in ports
        ),
        "[::]:443": f"[::1]:{secure}",
        "[::]:80": f"[::1]:{plain}",
        "listen 443": f"listen 127.0.0.1:{secure}",
        "listen 80": f"listen 127.0.0.1:{plain}",
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "sleuth.conf").write_text(TEMPORARY.format(folder) + text)
    (folder / "nginx.conf").write_text(HTTP.format(folder))
    program = "/usr/sbin/nginx"
    arguments = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    with running(arguments, folder / "nginx.log"):
        yield f"https://127.0.0.1:{secure}"


@dataclass(kw_only=True)
class Server:
    """One `sleuth serve`; `ends` has the times at which it was signalled and gone, and the signal."""

    name: str
    folder: Path
    port: int
    environment: dict[str, str]
    ends: list[tuple[float, float, signal.Signals]] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
        with (self.folder / "serve.log").open("ab") as log:
            command = [*COMMAND, "--port", str(self.port)]
            self.process = subprocess.Popen(
                command, env=kept | self.environment, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )

    async def end(self, by: signal.Signals) -> None:
        assert self.process
        signalled = time.time()
        self.process.send_signal(by)
        await asyncio.to_thread(self.process.wait)
        self.ends.append((signalled, time.time(), by))

    async def wait_until_up(self) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            while True:
                with suppress(httpx.TransportError):
                    if (await client.get(f"http://127.0.0.1:{self.port}/livez")).is_success:
                        return
                assert self.process and self.process.poll() is None, (self.folder / "serve.log").read_text()[-2000:]
                await asyncio.sleep(0.2)


@dataclass(kw_only=True)
class Run:
    """A run as its client sees it over all connections."""

    thread: str
    question: str
    ids: list[int] = field(default_factory=list)
    end: str = ""
    connections: int = 0
    starts: int = 0
    resumes: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    async def follow_to_end(self, client: httpx.AsyncClient) -> None:
        began = time.perf_counter()
        while not await self._start(client):  # noqa: ASYNC110 - a server has to come back
            await asyncio.sleep(0.5)
        quiet = 0
        while self.end not in ("answer", "error", "stopped"):
            before = len(self.ids)
            self.connections += 1
            with suppress(httpx.TransportError):
                await self._read(client)
            quiet = quiet + 1 if len(self.ids) == before else 0
            if not self.end:
                await asyncio.sleep(0.2)
            if quiet > 20 and (await self._send(client, f"/v1/runs/{self.thread}/resume", {})) == 202:
                self.resumes, quiet = self.resumes + 1, 0
        self.seconds = time.perf_counter() - began

    async def _start(self, client: httpx.AsyncClient) -> bool:
        self.starts += 1
        form = {"question": self.question, "method": METHOD, "thread": self.thread}
        status = await self._send(client, "/v1/runs", form)
        return status == 201 or (status in (400, 409) and self.starts > 1)  # an earlier request started it

    async def _send(self, client: httpx.AsyncClient, path: str, form: dict[str, Any]) -> int:
        try:
            return (await client.post(path, json=form)).status_code
        except httpx.TransportError:
            return 0

    async def _read(self, client: httpx.AsyncClient) -> None:
        headers = {"Last-Event-ID": str(self.ids[-1] if self.ids else 0)}
        async with client.stream("GET", f"/v1/runs/{self.thread}/events", headers=headers) as stream:
            self.statuses[stream.status_code] += 1
            async for id, name in _events(stream):
                self.ids.append(id)
                if name != "step":
                    self.end = name


async def _events(stream: httpx.Response) -> AsyncIterator[tuple[int, str]]:
    """Yield the id and the name of each complete event that is stored."""
    id, name = 0, ""
    async for line in stream.aiter_lines():
        kind, _, value = line.partition(": ")
        if kind == "id":
            id = int(value)
        elif kind == "event":
            name = value
        elif not line:
            if id:
                yield id, name
            id, name = 0, ""


async def disturb(servers: list[Server], kills: int, pause: float, order: random.Random) -> None:
    """End each server in turn and start it again; the other one is up meanwhile."""
    for number in range(kills):
        for server in servers:
            await asyncio.sleep(pause)
            await server.end(signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
            await asyncio.sleep(order.uniform(0.5, 3))
            server.start()
            await server.wait_until_up()


def repeated_calls(log: Path, servers: list[Server]) -> dict[str, Any]:
    """Count the calls that were requested more than once, by how the server of the previous request ended."""
    by_call: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in read_lines(log):
        if entry["call"]:  # not a question about the server's capabilities
            by_call[entry["call"]].append(entry)
    ends = {server.name: server.ends for server in servers}
    kinds: Counter[str] = Counter()
    gaps = []
    for entries in by_call.values():
        entries.sort(key=lambda each: each["arrived"])
        for one, following in pairwise(entries):
            during = [each for each in ends[one["server"]] if one["arrived"] <= each[1] <= following["arrived"]]
            if not during:
                kinds["without an end of its server"] += 1
            elif (gap := during[0][0] - one["replied"]) <= 0:
                kinds[f"in flight at {during[0][2].name}"] += 1
            else:
                kinds[f"received and not yet stored at {during[0][2].name}"] += 1
                gaps.append(gap)
    return {"calls": len(by_call), **kinds, "longest_gap_seconds": round(max(gaps, default=0.0), 3)}


async def drive(url: str, servers: list[Server], questions: list[str], given: argparse.Namespace) -> dict[str, Any]:
    started: list[Run] = []
    runs = [Run(thread=f"run-{number}", question=question) for number, question in enumerate(questions)]
    left, limits = iter(runs), httpx.Limits(max_connections=None)
    began = time.perf_counter()
    async with httpx.AsyncClient(base_url=url, verify=False, timeout=600, limits=limits, trust_env=False) as client:

        async def work() -> None:
            for run in left:
                if time.perf_counter() - began > 60 * given.minutes:
                    break
                started.append(run)
                await run.follow_to_end(client)

        disturbing = asyncio.create_task(disturb(servers, given.kills, given.pause, random.Random(0)))
        await asyncio.gather(*(work() for _ in range(given.at_once)))
        wall, was_disturbed = time.perf_counter() - began, disturbing.done()
        disturbing.cancel()
        await asyncio.gather(disturbing, return_exceptions=True)
    runs = started
    return {
        "runs": len(runs),
        "seconds": round(wall, 1),
        "ends_of_servers": {server.name: len(server.ends) for server in servers},
        "all_ends_during_the_runs": was_disturbed,
        "ended": dict(Counter(run.end for run in runs)),
        "incomplete_streams": sum(run.ids != list(range(1, len(run.ids) + 1)) for run in runs),
        "connections": sum(run.connections for run in runs),
        "statuses_of_streams": dict(sum((run.statuses for run in runs), Counter())),
        "starts_sent_again": sum(run.starts - 1 for run in runs),
        "resumed_by_client": sum(run.resumes for run in runs),
    }


def prepare(settings: sleuth.Settings, folder: Path) -> tuple[list[str], Replies]:
    async def work() -> tuple[list[str], Replies]:
        await ingest([EXAMPLES / "corpus"], settings=settings)
        return await simulated(settings, METHOD, folder)

    return asyncio.run(work())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no further run is started")
    parser.add_argument("--kills", type=int, default=10, help="of each server")
    parser.add_argument(
        "--pause", type=float, default=10.0, help="seconds between the start of a server and the next end"
    )
    parser.add_argument("--at-once", type=int, default=16, help="runs in progress")
    parser.add_argument("--embedder", default="default", help="`none` searches without vectors")
    parser.add_argument("--slack", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        database, vectors = stack.enter_context(postgres()), stack.enter_context(chroma())
        embedder = {} if given.embedder == "default" else {"embedder": given.embedder}
        shared = {"database_url": database.url, "chroma_url": vectors.url, **embedder}
        settings = sleuth.Settings(home=folder / "first", **shared)
        asked, replies = in_own_process(prepare, settings, folder / "simulated")
        port, log, servers = free_port(), folder / "calls.jsonl", []
        stack.enter_context(serving(serve_model, replies, port, log))
        wait_until_up(f"http://127.0.0.1:{port}/one/v1/models")
        for each in ("one", "two"):
            (folder / each).mkdir()
            own = {"home": str(folder / each), "model_url": f"http://127.0.0.1:{port}/{each}/v1", **shared}
            environment = {f"SLEUTH_{key.upper()}": value for key, value in own.items()}
            server = Server(name=each, folder=folder / each, port=free_port(), environment=environment)
            servers.append(server)
            server.start()
            stack.callback(lambda server=server: server.process.kill())
        for server in servers:
            wait_until_up(f"http://127.0.0.1:{server.port}/livez")
        url = stack.enter_context(nginx(folder, [server.port for server in servers]))
        found = asyncio.run(drive(url, servers, [*islice(cycle(asked), given.runs)], given))
        found["repeated"] = repeated_calls(log, servers)
    print(json.dumps(found, indent=1))
    if given.json:
        write_json(given.json, found)
    repeated = found["repeated"]
    lost = found["runs"] - found["ended"].get("answer", 0) or found["incomplete_streams"]
    late = repeated["longest_gap_seconds"] > given.slack or repeated.get("without an end of its server", 0)
    sys.exit(1 if lost or late else 0)


if __name__ == "__main__":
    main()
