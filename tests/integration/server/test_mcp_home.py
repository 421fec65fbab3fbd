"""The tools on one home that stays open, as `sleuth mcp` has them, without its process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from serve_scene import FILES, QUESTION, Oracle, opening
from test_mcp import PLAIN, refused, value

from sleuth.agents.model import NamedModel
from sleuth.studio.client.services import open_client
from sleuth.studio.mcp import mcp_server
from sleuth.studio.mcp_backends import LocalBackend, open_local_backend
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings


async def home_of(folder: Path, files: dict[str, str], **more: Any) -> Settings:
    """Ingest files; return the settings of their home."""
    (folder / "docs").mkdir()
    for name, text in files.items():
        (folder / "docs" / name).write_text(text)
    settings = Settings(home=folder / "home", embedder="none", **more)
    await ingest([folder / "docs"], settings=settings)
    return settings


@asynccontextmanager
async def tools(settings: Settings, model: NamedModel | None = None) -> AsyncIterator[tuple[Client, LocalBackend]]:
    open_model = opening(model) if model else open_client
    async with (
        open_local_backend(settings, open_model=open_model) as backend,
        Client(mcp_server(lambda _owner: backend), read_timeout_seconds=120) as client,
    ):
        yield client, backend


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """Yield the URL of a server that accepts connections and never replies."""

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def listed(client: Client) -> dict[str, Any]:
    """Return the state of each run."""
    return {row["thread"]: row["state"] for row in value(await client.call_tool("runs", {}))["result"]}


async def test_run_is_stored_before_the_call_returns_without_an_answer(tmp_path: Path) -> None:
    async with silent_server() as url:
        settings = await home_of(tmp_path, FILES, model_url=url)
        async with tools(settings) as (client, _):
            running = value(await client.call_tool("ask", {**PLAIN, "wait": 1}))
            assert running["status"] == "running"
            assert (await listed(client)).keys() == {running["thread"]}


async def test_run_whose_model_server_is_away_has_failed(tmp_path: Path) -> None:
    settings = await home_of(tmp_path, FILES, model_url="http://127.0.0.1:9/v1")
    async with tools(settings) as (client, _):
        said = await refused(client, "ask", **PLAIN)
        thread = said.rstrip(".").rsplit(" ", 1)[-1]
        assert await listed(client) == {thread: "failed"}


async def test_finished_run_is_returned_without_its_model_server(tmp_path: Path) -> None:
    settings = await home_of(tmp_path, FILES, model_url="http://127.0.0.1:9/v1")
    async with tools(settings, Oracle()) as (client, _):
        answer = value(await client.call_tool("ask", PLAIN))
    async with tools(settings) as (client, _):
        assert value(await client.call_tool("resume", {"thread": answer["thread"]})) == answer


async def test_home_is_opened_once_and_has_what_is_ingested_later(tmp_path: Path) -> None:
    settings = await home_of(tmp_path, FILES)
    async with tools(settings, Oracle()) as (client, backend):
        assert not value(await client.call_tool("search", {"query": "harbour master", "mode": "keyword"}))["result"]
        async with backend.collection() as before:
            pass
        (tmp_path / "docs" / "master.md").write_text("Nela Orrin is the harbour master.")
        await ingest([tmp_path / "docs"], settings=settings)
        (found,) = value(await client.call_tool("search", {"query": "harbour master", "mode": "keyword"}))["result"]
        assert found["document"].endswith("master.md")
        async with backend.collection() as after:
            assert after is before


async def test_time_out_of_a_driver_is_a_failure_and_not_the_end_of_wait(tmp_path: Path) -> None:
    oracle = Oracle(lambda _request: TimeoutError(110, "Connection timed out"))
    async with tools(await home_of(tmp_path, FILES), oracle) as (client, _):
        assert await refused(client, "ask", **PLAIN, wait=60) == "Error executing tool ask"
        assert [*(await listed(client)).values()] == ["failed"]


async def test_budget_of_a_run_in_progress_is_refused(tmp_path: Path) -> None:
    oracle = Oracle()
    oracle.free.clear()
    async with tools(await home_of(tmp_path, FILES), oracle) as (client, _):
        thread = value(await client.call_tool("ask", {**PLAIN, "wait": 0.1}))["thread"]
        assert "keeps its budget" in await refused(client, "resume", thread=thread, max_calls=5)
        oracle.free.set()
        assert value(await client.call_tool("resume", {"thread": thread, "max_calls": None}))["text"] == "Edric Gannow"


async def test_null_is_as_if_an_argument_were_left_out(tmp_path: Path) -> None:
    async with tools(await home_of(tmp_path, FILES), Oracle()) as (client, _):
        for tool in (await client.list_tools()).tools:
            required = tool.input_schema.get("required", [])
            optional = dict.fromkeys(tool.input_schema["properties"].keys() - {*required, "method"})
            given = {"question": QUESTION, "query": QUESTION, "id": "docs/light.md", "thread": "none"}
            arguments = {name: given[name] for name in required} | optional
            plain = {"method": "reader"} if tool.name == "ask" else {}
            result = await client.call_tool(tool.name, arguments | plain)
            assert not result.is_error or "There is no" in str(result.content), (tool.name, result.content)
        assert "query: " in await refused(client, "search", query=None)


@pytest.mark.nightly
async def test_run_over_300_documents_is_stored_before_its_call_returns(tmp_path: Path) -> None:
    files = {f"{number}.md": f"Tower {number} was built in {1500 + number} by Oda Marsh." for number in range(300)}
    async with tools(await home_of(tmp_path, files), Oracle()) as (client, _):
        arguments = {"question": "Who built tower 17?", "method": "reader", "wait": 1}
        threads = [value(await client.call_tool("ask", arguments))["thread"] for _ in range(3)]
        assert {*threads} <= (await listed(client)).keys()
