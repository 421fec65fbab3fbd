"""Kills of workers and drivers of an ingest on a Ray cluster: nothing is lost, nothing is stored twice."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from process import SLEUTH
from ray_fixture import Cluster, ray_cluster

from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

KILLS = 200
WORKERS = 3


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
    """Return the contents of the collection and its indexes, by number and content."""
    async with await Collection.open(settings) as library:
        counts, fingerprint = await library.count(), await library.fingerprint()
        await library.catch_up()
        notes, ids = library.indexes.notes, await library.passage_ids()
    (keywords,) = (settings.home / "keywords").iterdir()
    index = KeywordIndex(keywords)
    return {
        "counts": counts,
        "fingerprint": fingerprint,
        "repairs": notes,
        "is_indexed": index.ids() == ids and index.count() == len(ids),
    }


class Ingest:
    """An ingest on a cluster in a process of its own, which is killed now and then.

    `took` are the seconds of the last ingest without a kill: a killed worker has the time to start again.
    """

    def __init__(self, cluster: Cluster, folder: Path, random: Random) -> None:
        self.kills = Counter[str]()
        self._cluster, self._random = cluster, random
        self._command = [*SLEUTH, "ingest", str(folder), "--ray", cluster.address, "--json"]
        self._took = 0.0

    def run(self, home: Path, *, is_killed: bool = True) -> dict[str, Any]:
        """Start the ingest until one is not killed; return its report."""
        own = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", **self._cluster.environment}
        while True:
            pipe, began = subprocess.PIPE, time.monotonic()
            process = subprocess.Popen(self._command, env={**os.environ, **own}, stdout=pipe, stderr=pipe)
            if is_killed:
                self._kill(process)
            out, err = process.communicate()
            if process.returncode != -signal.SIGKILL:
                assert process.returncode == 0, err.decode()
                self._took = self._took if is_killed else time.monotonic() - began
                return dict(json.loads(out))

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill workers until the ingest ends, and the ingest itself in every other call."""
        share = self._random.uniform(0.3, 1) if self._random.random() < 0.5 else 99
        ends = time.monotonic() + share * self._took
        while process.poll() is None:
            time.sleep(self._random.uniform(0.1, 0.4) * self._took)
            if process.poll() is None and time.monotonic() > ends:
                process.kill()
                self.kills["drivers"] += 1
                return
            self._kill_worker()

    def _kill_worker(self) -> None:
        if found := self._cluster.workers():
            try:
                os.kill(self._random.choice(found), signal.SIGKILL)
                self.kills["workers"] += 1
            except ProcessLookupError:
                return


def test_kills_of_workers_and_drivers_lose_and_double_nothing(tmp_path: Path) -> None:
    random, ingests = Random(0), 0
    folder = documents(tmp_path / "in", random)
    here = Settings(home=tmp_path / "here", embedder="none")
    asyncio.run(ingest([folder], settings=here))
    expected = asyncio.run(stored(here))
    with ray_cluster(WORKERS) as cluster:
        ingesting = Ingest(cluster, folder, random)
        ingesting.run(tmp_path / "first", is_killed=False)
        while ingesting.kills.total() < KILLS:
            home = tmp_path / f"home{ingests}"
            report = ingesting.run(home)
            assert report["failed"] == 0, report
            found = asyncio.run(stored(Settings(home=home, embedder="none")))
            assert found == expected, (ingests, ingesting.kills)
            ingests += 1
