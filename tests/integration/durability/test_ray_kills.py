"""Kills of workers and drivers of an ingest on a Ray cluster: nothing is lost, nothing is stored twice.

SLEUTH_TEST_RAY_KILLS sets the number of kills.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ray_fixture import Cluster, ray_cluster

from sleuth.graphs.ingestion import ingest
from sleuth.tools.collection import Collection
from sleuth.tools.search import KeywordIndex
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.faults, pytest.mark.timeout(7_200)]

KILLS = int(os.environ.get("SLEUTH_TEST_RAY_KILLS", "200"))
WORKERS = 3
MOST_SECONDS = 120.0
RECORD = Path(__file__).parents[3] / ".cache" / "ray_kills.json"
COMMAND = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()", "ingest"]


def documents(folder: Path, random: Random) -> Path:
    """Files of several batches, each with sentences of its own."""
    folder.mkdir()
    names = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Augustus De Morgan"]
    for at in range(24):
        lines = [
            f"<p>{random.choice(names)} wrote letter {at}-{line} to {random.choice(names)}." for line in range(600)
        ]
        (folder / f"{at:02}.html").write_text(f"<title>Letters {at}</title>{''.join(lines)}", encoding="utf-8")
    return folder


async def stored(settings: Settings) -> dict[str, Any]:
    """Return what the collection and its indexes contain, by number and content."""
    async with await Collection.open(settings) as library:
        counts, fingerprint = await library.count(), await library.fingerprint()
        await library.catch_up()
        notes, ids = library.notes, await library.passage_ids()
    (keywords,) = (settings.home / "keywords").iterdir()
    index = KeywordIndex(keywords)
    return {
        "counts": counts,
        "fingerprint": fingerprint,
        "repairs": notes,
        "is_indexed": index.ids() == ids and index.count() == len(ids),
    }


class Ingest:
    """An ingest on a cluster in a process of its own, which is killed now and then."""

    def __init__(self, cluster: Cluster, home: Path, folder: Path, random: Random, kills: Counter[str]) -> None:
        self._cluster, self._random, self._kills = cluster, random, kills
        self._command = [*COMMAND, str(folder), "--ray", cluster.address, "--json"]
        own = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", **cluster.environment}
        self._environment = {**os.environ, **own}

    def run(self) -> dict[str, Any]:
        """Start the ingest until one is not killed; return its report."""
        while True:
            process = subprocess.Popen(
                self._command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            began = time.monotonic()
            dies_after = self._random.uniform(5, 40) if self._random.random() < 0.5 else MOST_SECONDS
            while process.poll() is None:
                time.sleep(self._random.uniform(0.2, 2))
                if time.monotonic() - began > dies_after and process.poll() is None:
                    process.kill()
                    self._kills["drivers"] += 1
                    break
                self._kill_worker()
            out, err = process.communicate()
            if process.returncode != -signal.SIGKILL:
                assert process.returncode == 0, err.decode()
                return dict(json.loads(out))

    def _kill_worker(self) -> None:
        """Kill a worker in the middle of a task, mostly."""
        if (found := self._cluster.workers()) and self._random.random() < 0.5:
            try:
                os.kill(self._random.choice(found), signal.SIGKILL)
                self._kills["workers"] += 1
            except ProcessLookupError:
                return


def test_kills_of_workers_and_drivers_lose_and_double_nothing(tmp_path: Path) -> None:
    random, kills, ingests = Random(int(os.environ.get("SLEUTH_TEST_SEED", "0"))), Counter[str](), 0
    folder = documents(tmp_path / "in", random)
    here = Settings(home=tmp_path / "here", embedder="none")
    asyncio.run(ingest([folder], settings=here))
    expected = asyncio.run(stored(here))
    with ray_cluster(WORKERS) as cluster:
        while kills.total() < KILLS:
            home = tmp_path / f"home{ingests}"
            report = Ingest(cluster, home, folder, random, kills).run()
            assert report["failed"] == 0, report
            found = asyncio.run(stored(Settings(home=home, embedder="none")))
            assert found == expected, (ingests, kills)
            ingests += 1
            RECORD.parent.mkdir(exist_ok=True)
            RECORD.write_text(json.dumps({**kills, "ingests": ingests}) + "\n")
