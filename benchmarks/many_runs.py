"""Waits of one owner of a server while another, with many runs, reads and searches, against an empty store.

    python -m benchmarks.many_runs [--runs 50000] [--similar 2000] [--repeats 100]

The server is a process of its own. Anna has `--runs` runs, each with metadata, and `--similar` more with names that are
nearly equal; on the other server nobody has any. She asks for unknown runs and searches threads by metadata, each
`--repeats` times, and meanwhile Ben lists his runs every 10 ms. Prints the longest and the median wait of Ben in
milliseconds, those of Anna, and the resident memory of the server before and after her searches in MiB, as JSON.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx
import psutil

from benchmarks.harness import instant
from benchmarks.servers import free_port, serving, wait_until_up
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.tables import threads
from sleuth.studio.server.app import create_app
from sleuth.studio.server.main import server_of
from sleuth.tools.settings import Settings

KEYS = "anna:apple-secret,ben:plum-secret"
ANNA, BEN = {"Authorization": "Bearer apple-secret"}, {"Authorization": "Bearer plum-secret"}
Row = dict[str, float]


def serve(home: Path, port: int) -> None:
    app = create_app(Settings(home=home, embedder="none", api_keys=KEYS), open_model=instant)
    server_of(app, host="127.0.0.1", port=port).run()


async def fill(home: Path, runs: int, similar: int) -> None:
    """Store runs that have ended, without checkpoints: only their rows are read here."""
    names = [*(f"{number:012x}" for number in range(runs)), *(f"anna:weekly-report-{at:06}" for at in range(similar))]
    texts = ("question", "problem", "parent", "parent_checkpoint", "created_at")
    about = {**dict.fromkeys(texts, "?"), "owner": "anna", "method": "plain-rag", "options": "{}", "status": "done"}
    rows = [
        {**about, "id": id, "outcome": "answered", "updated_at": f"2026-01-01T{at:08}"} | metadata(at)
        for at, id in enumerate(names)
    ]
    async with open_store(Settings(home=home)) as store:
        with store.engine.begin() as connection:
            connection.execute(threads.insert(), rows)


def metadata(at: int) -> dict[str, str]:
    return {"client_metadata": json.dumps({"user": f"user {at % 100}", "notes": "x" * 400})}


async def timed(client: httpx.AsyncClient, method: str, path: str, taken: list[float], **options: object) -> None:
    began = time.perf_counter()
    await client.request(method, path, **options)  # type: ignore[arg-type]  # the options of httpx
    taken.append(1000 * (time.perf_counter() - began))


async def measure(port: int, pid: int, repeats: int) -> Row:
    server, waits, unknown, search = psutil.Process(pid), [], [], []  # type: ignore[var-annotated]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as client:

        async def list_runs() -> None:
            while True:
                await timed(client, "GET", "/v1/runs", waits, headers=BEN)
                await asyncio.sleep(0.01)

        neighbour = asyncio.create_task(list_runs())
        body = {"metadata": {"user": "user 7"}, "limit": 10}
        await timed(client, "POST", "/langgraph/threads/search", [], headers=ANNA, json=body)
        before = server.memory_info().rss
        for at in range(repeats):
            await timed(client, "POST", "/langgraph/threads/search", search, headers=ANNA, json=body)
            await timed(client, "GET", f"/v1/runs/weekly-report-{at}x", unknown, headers=ANNA)
        neighbour.cancel()
        memory = {"mib_before": before / 2**20, "mib_after": server.memory_info().rss / 2**20}
    anna = {"unknown_ms": median(unknown), "search_ms": median(search)}
    return {"longest_wait_ms": max(waits), "median_wait_ms": median(waits), **anna, **memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--similar", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=100)
    options, found = parser.parse_args(), {}
    for name, runs, similar in (("empty", 0, 0), ("filled", options.runs, options.similar)):
        with tempfile.TemporaryDirectory(prefix="sleuth-many-runs-") as folder:
            if runs:
                asyncio.run(fill(Path(folder), runs, similar))
            port = free_port()
            with serving(serve, Path(folder), port) as pid:
                wait_until_up(f"http://127.0.0.1:{port}/healthz")
                found[name] = asyncio.run(measure(port, pid, options.repeats))
    ratios = {name: found["filled"][name] / value for name, value in found["empty"].items() if name.endswith("_ms")}
    print(json.dumps({**found, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
