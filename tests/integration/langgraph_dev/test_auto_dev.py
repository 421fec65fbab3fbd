"""auto in LangGraph's development server: its hops are threads of the server, shown, resumed and forked like others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dev_server import Server, langgraph_dev
from fault_scenarios import AUTO
from recording_proxy import Proxy, proxying
from scripted_backend import Scripted

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

BY_WORDS = {"plain-rag": {"mode": "keyword"}, "par-rag": {"coarse_mode": "keyword", "fine_mode": "keyword"}}


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(Scripted(AUTO.script)) as running:
        yield running


@pytest.mark.nightly
async def test_subruns_are_threads_of_the_dev_server(proxy: Proxy, tmp_path: Path) -> None:
    (tmp_path / "light.md").write_text("# The Pellowrig Light\n\nEdric Gannow built the Pellowrig Light.\n")
    home = tmp_path / "home"
    assert (await ingest([tmp_path / "light.md"], settings=Settings(home=home, embedder="none"))).added == 1
    settings = {"SLEUTH_HOME": str(home), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}
    await asyncio.to_thread(ask_and_fork, tmp_path, settings, proxy)


def ask_and_fork(folder: Path, settings: dict[str, str], proxy: Proxy) -> None:
    with langgraph_dev(folder, **settings) as server:
        outer = server.thread()
        asked: dict[str, Any] = {
            "assistant_id": "auto",
            "context": {"order": "plain-rag,par-rag/crp-rag", "hop_settings": BY_WORDS},
        }
        first = server.post(f"{outer}/runs/wait", input={"question": AUTO.question}, **asked)
        assert first["verdict"]["status"] == "answered", first
        assert [hop["method"] for hop in first["hops"].values()] == ["plain-rag", "par-rag"]
        listed = {each["thread_id"]: each["metadata"] for each in server.post("/threads/search", limit=50)}
        for number, hop in first["hops"].items():
            about = listed[hop["thread"]]
            assert (about["part_of"], str(about["hop"]), about["graph_id"]) == (outer[9:], number, hop["method"])
            state = server.get(f"/threads/{hop['thread']}/state")
            assert (state["values"]["verdict"]["text"], state["next"]) == (hop["text"], [])
        assert len(proxy.calls) == len(first["calls"])

        before_second = next(state for state in server.history(outer) if state["next"] == ["act"])
        made = fork(server, outer, before_second)
        second = server.post(f"{outer}/runs/wait", input=None, checkpoint=made["checkpoint"], **asked)
        old, new = ([hop["thread"] for hop in state["hops"].values()] for state in (first, second))
        assert old[0] == new[0]
        assert old[1] != new[1]
        assert second["verdict"] == first["verdict"]
        log = server.log.read_text()
        assert "BlockingError" not in log
        assert "Blocking call" not in log


def fork(server: Server, thread: str, state: dict[str, Any]) -> Any:
    return server.post(f"{thread}/state", checkpoint=state["checkpoint"], values={}, as_node="plan")
