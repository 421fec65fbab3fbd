"""Mixed work for `sleuth serve`, hour after hour, and whether its memory, handles, threads and disk stay constant.

    python -m benchmarks.soak FOLDER [--minutes 60] [--faults 0.05] [--every 5] [--warm 60] [--database URL]

The server is the command, in a process of its own, with embeddings and replies of model.py, which answers immediately
and fails at `--faults` of the requests for either. Six clients at a time ask by several methods, follow the events to
the end, upload and delete documents, search, stop and resume, fork from any checkpoint and resume that, read histories,
export and remove runs; a run that ends with an error is resumed until it answers, a failed upload is sent again. After
each round `sleuth runs prune` in another process keeps the runs of the last minute, and four checkpoints of each. The
numbers of runs and documents so stay about constant; a measure that grows nevertheless shows a leak.

FOLDER/samples.jsonl has a line every `--every` seconds. Of the samples after `--warm` seconds, a line is fitted to the
means of each minute. A measure is flat if the 95 % interval of its slope includes zero or less, or if the slope is less
than one percent of the mean per hour. Prints JSON; exits with 1 if a run could not be brought to an answer, the server
replied with a status of 500 or more (but 503 where the embedder fails), or a measure is not flat.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import mean

import httpx
import psutil
from scipy.stats import linregress, t

from benchmarks.servers import free_port, running, serving, wait_until_up
from benchmarks.soak import model
from benchmarks.soak.client import DOCUMENTS, Client
from sleuth.studio.evaluation.run_folder import append_line, read_lines

MEASURES = ("rss_mib", "handles", "threads", "disk_mb")
ENOUGH = 0.01
"""Of the mean, in an hour."""
SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()"]
PRUNE = [*SLEUTH, "runs", "prune", "--older-than", "1min", "--keep-last", "4", "--yes", "--json"]


def environment(folder: Path, model_url: str, database: str | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    own = {"HOME": str(folder / "home"), "MODEL_URL": model_url, "EMBEDDER": model_url, "TIMEOUT": "5"}
    own |= {"DATABASE_URL": database} if database else {}
    return kept | {f"SLEUTH_{name}": value for name, value in own.items()}


def sample(server: psutil.Process, home: Path) -> dict[str, float]:
    """Return the server's measures with its children's, and the size of SLEUTH_HOME; what disappears is left out."""
    found: Counter[str] = Counter()
    for each in [server, *server.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            own = {"rss_mib": each.memory_info().rss / (1 << 20), "handles": each.num_fds()}
            found.update({**own, "threads": each.num_threads()})
    for folder, _, files in os.walk(home):
        for path in (Path(folder, name) for name in files):
            with suppress(FileNotFoundError):
                size = path.stat().st_size / 1e6
                found.update({"disk_mb": size, f"disk {path.relative_to(home).parts[0]}": size})
    return dict(found)


@asynccontextmanager
async def sampling(given: argparse.Namespace, server: psutil.Process) -> AsyncIterator[None]:
    async def write() -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(given.every)
            taken = await asyncio.to_thread(sample, server, given.folder / "home")
            append_line(given.folder / "samples.jsonl", {"at": round(time.monotonic() - began, 1), **taken})

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def work(client: Client, minutes: float, env: dict[str, str]) -> None:
    """Run rounds until the time is over; between them another process prunes the store."""
    until = time.monotonic() + 60 * minutes
    await client.put(range(DOCUMENTS))
    while time.monotonic() < until:
        await client.round()
        process = await asyncio.create_subprocess_exec(*PRUNE, stdout=subprocess.PIPE, env=env)
        output, _ = await process.communicate()
        if process.returncode:
            client.failures.append("prune failed")
            break
        pruned = json.loads(output)
        client.done.update({f"pruned {name}": count for name, count in pruned.items() if isinstance(count, int)})
        await client.refresh()
        client.done["prune"] += 1


async def drive(given: argparse.Namespace, url: str, pid: int, env: dict[str, str]) -> Client:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300) as http:
        client = Client(http)
        async with sampling(given, psutil.Process(pid)):
            await work(client, given.minutes, env)
        counts = await http.get(env["SLEUTH_MODEL_URL"].removesuffix("/v1") + "/counts")
        client.done.update(counts.json())
    return client


def soak(given: argparse.Namespace) -> Client:
    model_port, port = free_port(), free_port()
    model_url, url = f"http://127.0.0.1:{model_port}/v1", f"http://127.0.0.1:{port}"
    env = environment(given.folder, model_url, given.database)
    with serving(model.serve, model_port, given.faults):
        wait_until_up(f"{model_url}/models")
        command = [*SLEUTH, "serve", "--port", str(port)]
        with running(command, given.folder / "serve.log", env=env) as pid:
            wait_until_up(f"{url}/openapi.json")
            return asyncio.run(drive(given, url, pid, env))


def slope(samples: Sequence[dict[str, float]], measure: str) -> dict[str, float | bool] | None:
    """Return the growth of a measure per hour with its 95 % interval, and its mean; None for too few minutes."""
    minutes: dict[int, list[float]] = defaultdict(list)
    for row in samples:
        minutes[int(row["at"] // 60)].append(row[measure])
    if len(minutes) < 5:
        return None
    values = [mean(own) for own in minutes.values()]
    line = linregress([minute / 60 for minute in minutes], values)
    reach = float(t.ppf(0.975, len(values) - 2)) * line.stderr
    found = {"hourly": line.slope, "low": line.slope - reach, "high": line.slope + reach, "mean": mean(values)}
    return found | {"flat": bool(found["low"] <= 0 or found["hourly"] < ENOUGH * found["mean"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="must not exist")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--faults", type=float, default=0.05)
    parser.add_argument("--every", type=float, default=5, help="seconds between samples")
    parser.add_argument("--warm", type=float, default=60, help="seconds at the start that do not count")
    parser.add_argument("--database", help="as in SLEUTH_DATABASE_URL")
    given = parser.parse_args()
    given.folder.mkdir(parents=True)
    client = soak(given)
    samples = [row for row in read_lines(given.folder / "samples.jsonl") if row["at"] >= given.warm]
    slopes = {name: slope(samples, name) for name in MEASURES}
    found = {"done": dict(client.done.most_common()), "failures": client.failures, "slopes": slopes}
    print(json.dumps(found, indent=1))
    sys.exit(int(bool(client.failures) or any(each is not None and not each["flat"] for each in slopes.values())))


if __name__ == "__main__":
    main()
