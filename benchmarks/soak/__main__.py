"""Mixed work for `sleuth serve`, hour after hour, and whether its memory, handles, threads and disk stay what they are.

    python -m benchmarks.soak FOLDER [--minutes 60] [--faults 0.05] [--every 5] [--warm 60] [--seed 0]

Each call is a slice that continues with the previous store; `--minutes 0` only reports all slices again. The
server is the command, in a process of its own, with embeddings and replies of model.py, which answers immediately and
breaks at `--faults` of the requests for either. Six clients at a time ask by several methods, follow the events to the
end, upload and delete documents, search, stop and resume, fork from any checkpoint and resume that, look back, export
and remove runs; a run that ends with an error is resumed until it answers, an upload sent again until it is read. After
each round, when the server is idle, all that it has acknowledged is compared with what is there (known.py):
documents with their texts, some of them in searches, runs, some of their answers. Then `sleuth runs prune` in another
process keeps what was touched in the last minute, and four checkpoints of each of those runs. Runs and documents so
stay about as many; what grows nevertheless is lost to somebody.

FOLDER/samples.jsonl has a line every `--every` seconds, FOLDER/slices.jsonl what was done in each slice. Exits with 1
where something acknowledged is not there, a run could not be brought to an answer, the server replied with a status of
500 or more (but 503 where the embedder fails), or a slope is not flat: see report.py.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.growth.servers import free_port
from benchmarks.soak import report
from benchmarks.soak.client import DOCUMENTS, Client

BOUNDED = (
    "import functools as f; of = f.lru_cache; "
    "f.lru_cache = lambda maxsize=128, typed=False: of(min(maxsize, {}) if type(maxsize) is int else maxsize, typed)"
)
SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()"]


def environment(folder: Path, port: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    model = f"http://127.0.0.1:{port}/v1"
    own = {"HOME": str(folder / "home"), "MODEL_URL": model, "EMBEDDER": model, "TIMEOUT": "5"}
    return kept | {f"SLEUTH_{name}": value for name, value in own.items()}


@contextmanager
def running(command: list[str], log: Path, **options: Any) -> Iterator[psutil.Process]:  # noqa: ANN401
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **options)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


async def up(http: httpx.AsyncClient, path: str) -> None:
    for _ in range(1200):
        try:
            if (await http.get(path)).is_success:
                return
        except httpx.TransportError:
            await asyncio.sleep(0.1)
    raise SystemExit(f"{http.base_url} does not come up: see the logs")


def sample(server: psutil.Process, home: Path) -> dict[str, float]:
    """Return the server with its children, and what is below SLEUTH_HOME; what goes away meanwhile does not count."""
    found: Counter[str] = Counter()
    for each in [server, *server.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            own = {"rss_mib": each.memory_info().rss / (1 << 20), "handles": each.num_fds()}
            found.update({**own, "threads": each.num_threads()})
    for folder, _, files in os.walk(home):  # which passes over what goes away meanwhile
        for path in (Path(folder, name) for name in files):
            with suppress(FileNotFoundError):
                size = path.stat().st_size / 1e6
                found.update({"disk_mb": size, f"disk {path.relative_to(home).parts[0]}": size})
    return {name: round(value, 3) for name, value in found.items()}


@asynccontextmanager
async def sampling(file: Path, number: int, every: float, server: psutil.Process, home: Path) -> AsyncIterator[None]:
    async def write() -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(every)
            taken = await asyncio.to_thread(sample, server, home)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"slice": number, "at": round(time.monotonic() - began, 1)} | taken) + "\n")

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def slice_of(given: argparse.Namespace, number: int, http: httpx.AsyncClient) -> Client:
    """Run rounds until the time is over; between them another process prunes the store."""
    client, until = Client(http, f"{given.seed} {number}"), time.monotonic() + 60 * given.minutes
    prune = [*SLEUTH, "runs", "prune", "--older-than", "1min", "--keep-last", "4", "--yes", "--json"]
    listed = (await http.get("/v1/runs?limit=1000")).json()
    client.known.runs = {row["id"]: None for row in listed}
    await client.put(range(DOCUMENTS))
    while time.monotonic() < until:
        await client.round()
        await client.compare()
        await client.count_runs()
        child = await asyncio.create_subprocess_exec(*prune, stdout=subprocess.PIPE, env=environment_of(given))
        said, _ = await child.communicate()
        if child.returncode:
            client.lost.append("prune failed")
            break
        pruned = json.loads(said)
        client.done.update({f"pruned {name}": count for name, count in pruned.items()})
        await client.count_runs(pruned["threads"])
        client.done["prune"] += 1
    return client


def environment_of(given: argparse.Namespace) -> dict[str, str]:
    """Return the model's port is part of the embedder's name, and so stays the same from slice to slice."""
    file = given.folder / "port"
    if not file.exists():
        file.write_text(str(free_port()), encoding="ascii")
    own = environment(given.folder, int(file.read_text(encoding="ascii")))
    return own | {"SLEUTH_DATABASE_URL": given.database} if given.database else own


def server_of(given: argparse.Namespace) -> list[str]:
    """Return the command; where it shall remember little, with all its caches bounded so."""
    *python, code = SLEUTH
    return [*python, f"{BOUNDED.format(given.remember)}; {code}"] if given.remember else SLEUTH


async def met(model_url: str) -> dict[str, int]:
    """Return the model server's counters."""
    async with httpx.AsyncClient(trust_env=False) as http:
        counts: dict[str, int] = (await http.get(model_url.removesuffix("/v1") + "/met")).json()
    return counts


async def work(given: argparse.Namespace, number: int) -> Client:
    own, port, folder = environment_of(given), free_port(), given.folder
    model = [
        sys.executable,
        "-m",
        "benchmarks.soak.model",
        own["SLEUTH_MODEL_URL"].split(":")[2][:-3],
        str(given.faults),
        f"{number}",
    ]
    with running(model, folder / "model.log"):
        async with httpx.AsyncClient(base_url=own["SLEUTH_MODEL_URL"], trust_env=False) as http:
            await up(http, "/models")
        with running([*server_of(given), "serve", "--port", str(port)], folder / "serve.log", env=own) as server:
            url = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300) as http:
                await up(http, "/openapi.json")
                async with sampling(folder / "samples.jsonl", number, given.every, server, folder / "home"):
                    client = await slice_of(given, number, http)
        client.done.update(await met(own["SLEUTH_MODEL_URL"]))
    return client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--faults", type=float, default=0.05)
    parser.add_argument("--every", type=float, default=5, help="seconds between samples")
    parser.add_argument("--warm", type=float, default=60, help="seconds at each slice's start that count for nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--remember", type=int, help="entries that each of the server's caches may hold, instead of its own"
    )
    parser.add_argument("--database", help="as in SLEUTH_DATABASE_URL; the same for all slices of a folder")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    slices = given.folder / "slices.jsonl"
    if given.minutes:
        number = len(slices.read_text(encoding="utf-8").splitlines()) if slices.exists() else 0
        client = asyncio.run(work(given, number))
        row = {"slice": number, "minutes": given.minutes, "done": dict(client.done), "lost": client.lost}
        with slices.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
    sys.exit(report.tell(given.folder, given.warm))


if __name__ == "__main__":
    main()
