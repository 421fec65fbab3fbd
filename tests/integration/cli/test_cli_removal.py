"""`sleuth runs prune` and `sleuth runs delete`: removals that are asked for, and no others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive, knowing
from cli_process import sleuth
from serve_scene import QUESTION

from sleuth.graphs.persistence.store import open_store
from sleuth.tools.settings import Settings


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Return the environment of a store with the runs a and b, and the chat `talk` with sub-runs."""
    env = await archive(tmp_path)
    async with knowing() as proxy:
        env["SLEUTH_MODEL_URL"] = proxy.url
        options = {"a": ("plain-rag",), "b": ("plain-rag",), "talk": ("chat", "--set", "method=plain-rag")}
        asks = [sleuth("ask", QUESTION, "--thread", name, "--method", *own, **env) for name, own in options.items()]
        assert [asked.status for asked in await asyncio.gather(*asks)] == [0, 0, 0]
        yield env


async def listed(env: dict[str, str]) -> dict[str, Any]:
    return {run["id"]: run for run in (await sleuth("runs", "list", "--json", **env)).json()}


async def test_prune_without_yes_lists_and_removes_nothing(env: dict[str, str]) -> None:
    before, history = await listed(env), len((await sleuth("runs", "history", "a", "--json", **env)).json())
    prune = ("runs", "prune", "--older-than", "0 days", "--keep-last", "1")
    shown, as_json = await sleuth(*prune, **env), (await sleuth(*prune, "--json", **env)).json()
    assert shown.status == 0
    assert {line.split("\t")[0] for line in shown.out.splitlines()[1:-1]} == before.keys()
    assert shown.out.splitlines()[-1].endswith(": sleuth runs prune --older-than '0 days' --keep-last 1 --yes")
    assert (as_json["threads"], as_json["checkpoints"], as_json["texts"]) == (0, 0, 0)
    assert set(as_json["would_remove"]["threads"]) == before.keys()
    young = (await sleuth("runs", "prune", "--keep-last", "1", "--json", **env)).json()
    assert young["would_remove"]["threads"] == []
    assert young["would_remove"]["checkpoints"]["a"] == history - 1
    assert await listed(env) == before
    removed = (await sleuth(*prune, "--yes", "--json", **env)).json()
    assert removed["threads"] == len(before)
    assert await listed(env) == {}
    assert "Nothing to remove" in (await sleuth(*prune, **env)).out


async def test_delete_removes_runs_with_their_subruns(env: dict[str, str]) -> None:
    before = await listed(env)
    hops = {id for id, run in before.items() if run["part_of"] == "talk"}
    assert hops
    deleted = await sleuth("runs", "delete", "talk", "a", "a", "--json", **env)
    assert set(deleted.json()["deleted"]) == {"talk", "a", *hops}
    assert (await listed(env)).keys() == {"b"}
    assert (await sleuth("runs", "delete", "b", **env)).out == "Deleted 1 run.\n"


async def test_delete_with_an_unusable_name_deletes_nothing(env: dict[str, str]) -> None:
    before = await listed(env)
    (hop, *_) = [id for id, run in before.items() if run["part_of"]]
    for name in ("nowhere", hop):
        refused = await sleuth("runs", "delete", "a", name, **env)
        assert refused.status == 2
        assert name in refused.err
    async with open_store(Settings(home=Path(env["SLEUTH_HOME"]))) as store, store.locks.hold("b"):
        running = await sleuth("runs", "delete", "a", "b", **env)
    assert running.status == 1
    assert "b" in running.err
    assert await listed(env) == before
