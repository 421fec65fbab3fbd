"""`sleuth triples` as a process: resumed after a kill, stopped by a budget."""

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive
from cli_process import sleuth
from scripted_backend import Asked, Scripted, proxying

PASSAGES, AT_ONCE, KILLED_AT = 40, 3, 12
MAIN = "import sys; from sleuth.studio import cli; sys.argv[0] = 'sleuth'; cli.main()"


class Reader:
    """A script that reads one fact in each passage; counts how often it was asked about each."""

    def __init__(self) -> None:
        self.asked = Counter[str]()

    def __call__(self, asked: Asked) -> Any:
        found = re.findall(r"Oda \d+", asked.text)[0]
        self.asked[found] += 1
        return {"triples": [{"subject": found, "predicate": "born in", "object": "Varn"}]}


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def env(tmp_path: Path, reader: Reader) -> AsyncIterator[dict[str, str]]:
    lines = [{"id": f"p{at}", "title": f"Oda {at}", "text": f"Born {at} days late in Varn."} for at in range(PASSAGES)]
    async with proxying(Scripted(reader)) as proxy:
        own = {"SLEUTH_MODEL_URL": proxy.url, "SLEUTH_CONCURRENCY": str(AT_ONCE), "COLUMNS": "120"}
        yield await archive(tmp_path, files={"corpus.jsonl": "\n".join(map(json.dumps, lines))}) | own


@pytest.mark.nightly
async def test_killed_triples_read_repeats_only_calls_in_flight(env: dict[str, str], reader: Reader) -> None:
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAIN, "triples", "read"), env=os.environ | env, stderr=asyncio.subprocess.DEVNULL
    )
    while len(reader.asked) < KILLED_AT:
        assert killed.returncode is None
        await asyncio.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    await killed.wait()
    status = (await sleuth("triples", "status", "--json", **env)).json()
    assert KILLED_AT - 2 * AT_ONCE <= status["readings"][0]["passages"] <= len(reader.asked) < PASSAGES

    again = await sleuth("triples", "read", "--json", **env)
    assert again.status == 0, again.err
    done = again.json()
    assert (done["passages_read"], done["passages"]) == (PASSAGES, PASSAGES)
    assert len(reader.asked) == PASSAGES
    assert sum(reader.asked.values()) - PASSAGES <= AT_ONCE
    assert (await sleuth("triples", "read", "--json", **env)).json()["calls"] == 0


async def test_triples_read_stops_at_its_budget(env: dict[str, str]) -> None:
    done = (await sleuth("triples", "read", "--max-calls", "5", "--json", **env)).json()
    assert (done["calls"], done["passages_read"]) == (5, 5)
    shown = await sleuth("triples", "status", **env)
    assert "5 of 40 passages" in shown.out
