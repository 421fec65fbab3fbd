"""The tools as the SDK's own client gets them: from the command over stdio, and from the server over HTTP."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from asgi_server import serving
from chat_scene import archive
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult
from process import SLEUTH
from scripted_backend import Scripted, proxying
from serve_scene import ANNA, BEN, KEYS, LIGHT, QUESTION, READING, Oracle, opening, upload
from starlette.responses import Response

from sleuth.graphs.registry import METHODS
from sleuth.studio.server.app import create_app
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

PLAIN = {"question": QUESTION, "method": "plain-rag", "settings": {"mode": "keyword"}}


def value(result: CallToolResult) -> Any:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error of a failing tool call."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (said,) = result.content
    assert said.type == "text"
    return said.text


async def tour(client: Client) -> None:
    """Call every tool once with valid and once with invalid arguments."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["ask", "survey", "report", "search", "list_documents", "get_document", "resume", "runs"]
    assert tools["ask"].input_schema["required"] == ["question"]
    assert tools["ask"].input_schema["properties"]["method"]["anyOf"][0]["enum"] == list(METHODS)
    assert all(tool.description and tool.output_schema for tool in tools.values())

    found = value(await client.call_tool("search", {"query": "Who built the light?", "mode": "keyword", "k": 2}))
    assert (found["result"][0]["document"], found["result"][0]["rank"]) == ("light.md", 1)

    told: list[tuple[float, str | None]] = []

    async def progress(number: float, _total: float | None, message: str | None) -> None:
        told.append((number, message))

    answer = value(await client.call_tool("ask", PLAIN, progress_callback=progress))
    assert (answer["status"], answer["text"], answer["cost"]["calls"]) == ("answered", "Edric Gannow", 1)
    nodes = ("retrieve", "answer", "check_evidence")
    steps = [
        f"thread {answer['thread']}: plain-rag: {node} {state}" for node in nodes for state in ("started", "finished")
    ]
    assert told[0] == (0, f"thread {answer['thread']}: starting")
    assert [(number, str(message).split("\n")[0]) for number, message in told[1:]] == list(enumerate(steps, start=1))
    assert "\n  " in str(told[-1][1])
    assert "Edric Gannow" in str(told[4][1])

    (cited,) = answer["citations"]
    part = {"id": cited["document"], "start": cited["start"], "length": cited["end"] - cited["start"]}
    document = value(await client.call_tool("get_document", part))
    assert document["text"] == cited["quote"]
    assert cited["quote"] in LIGHT
    assert document["length"] == len(value(await client.call_tool("get_document", {"id": "light.md"}))["text"])

    assert value(await client.call_tool("resume", {"thread": answer["thread"]})) == answer

    uncited = value(await client.call_tool("ask", {"question": QUESTION, "method": "closed-book"}))
    assert (uncited["status"], uncited["citations"]) == ("unknown", []), "citations are required"

    assert "Did you mean plain-rag" in await refused(client, "ask", **{**PLAIN, "method": "plan-rag"})
    assert "question is empty" in await refused(client, "ask", question=" ")
    assert "Did you mean light.md" in await refused(client, "get_document", id="lights.md")
    assert "There is no thread" in await refused(client, "resume", thread="none")
    assert "question is empty" in await refused(client, "search", query="")
    wrong = await refused(client, "search", query="light", k=0)
    assert "k: Input should be greater than or equal to 1." in wrong
    assert "http" not in wrong
    assert "Did you mean method" in await refused(client, "ask", question=QUESTION, metod="plain-rag")

    listed = value(await client.call_tool("list_documents", {"find": "light"}))["result"]
    assert [(each["id"], each["passages"]) for each in listed] == [("light.md", 1)]
    assert len(value(await client.call_tool("list_documents", {"limit": 2, "after": "fair.txt"}))["result"]) == 2

    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.mime_type == "text/plain"
    (part,) = (await client.read_resource(template.uri_template.replace("{+id}", "light.md"))).contents
    assert LIGHT in part.text  # type: ignore[union-attr]
    assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {
        "answer_with_citations",
        "find_sources",
    }
    prompt = await client.get_prompt("answer_with_citations", {"question": QUESTION})
    assert QUESTION in prompt.messages[0].content.text  # type: ignore[union-attr]


async def outlive(client: Client, asked: asyncio.Event, free: asyncio.Event, calls: Callable[[], int]) -> None:
    """Cancel a call while the model works, find its run, and get its answer, without another model call."""
    told: list[str] = []

    async def progress(_number: float, _total: float | None, message: str | None) -> None:
        told.append(str(message))

    given = {**PLAIN, "thread": "mine"}
    with pytest.raises(MCPError, match="imed out"):
        await client.call_tool("ask", given, read_timeout_seconds=2, progress_callback=progress)
    assert told and all(message.startswith("thread mine: ") for message in told)
    await asked.wait()
    (row,) = value(await client.call_tool("runs", {"find": "light"}))["result"]
    assert (row["thread"], row["state"], row["answer"]) == ("mine", "running", None)
    going_on = value(await client.call_tool("resume", {"thread": "mine", "wait": 1}))
    assert (going_on["status"], going_on["thread"]) == ("running", "mine")
    assert "call `resume` with its thread, mine" in going_on["text"]
    free.set()
    answer = value(await client.call_tool("resume", {"thread": "mine"}))
    assert (answer["status"], answer["text"], calls()) == ("answered", "Edric Gannow", 1)
    assert "used already" in await refused(client, "ask", **given)
    (row,) = value(await client.call_tool("runs", {"limit": 1}))["result"]
    assert (row["state"], row["answer"]) == ("answered", "Edric Gannow")


@asynccontextmanager
async def command(folder: Path, backend: Scripted) -> AsyncIterator[StdioServerParameters]:
    """Ingest the files; yield the command with a model server."""
    async with proxying(backend) as proxy:
        env = {**os.environ, **await archive(folder), "SLEUTH_MODEL_URL": proxy.url}
        yield StdioServerParameters(command=SLEUTH[0], args=[*SLEUTH[1:], "mcp"], env=env)


@pytest.mark.nightly
async def test_mcp_over_stdio(tmp_path: Path) -> None:
    async with (
        command(tmp_path, Scripted(lambda _: READING)) as here,
        Client(here, read_timeout_seconds=120) as client,
    ):
        await tour(client)
        await archive(tmp_path, files={"master.md": "Nela Orrin is the harbour master."})
        found = value(await client.call_tool("search", {"query": "harbour master", "mode": "keyword"}))["result"]
        assert found[0]["document"] == "master.md", "what another process ingests meanwhile"


class Held(Scripted):
    """A backend whose replies to prompts wait until it is released."""

    def __init__(self) -> None:
        super().__init__(lambda _: READING)
        self.free, self.asked, self.calls = asyncio.Event(), asyncio.Event(), 0

    async def say(self, method: str, path: str, body: bytes) -> Response:
        if b"Edric" in body:
            self.calls += 1
            self.asked.set()
            await self.free.wait()
        return await super().say(method, path, body)


@pytest.mark.nightly
async def test_run_outlives_its_call_over_stdio_and_its_process(tmp_path: Path) -> None:
    backend = Held()
    async with command(tmp_path, backend) as here:
        async with Client(here, read_timeout_seconds=120) as client:
            await outlive(client, backend.asked, backend.free, lambda: backend.calls)
            backend.free.clear()
            backend.asked.clear()
            with pytest.raises(MCPError, match="imed out"):
                await client.call_tool("ask", {**PLAIN, "thread": "left"}, read_timeout_seconds=1)
            await backend.asked.wait()
        backend.free.set()
        async with Client(here, read_timeout_seconds=120) as client:
            assert value(await client.call_tool("resume", {"thread": "left"}))["text"] == "Edric Gannow"


Connect = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def server(folder: Path, oracle: Oracle) -> AsyncIterator[Connect]:
    """Serve two owners; yield a function that connects a client with a key."""
    app = create_app(Settings(home=folder, embedder="none", api_keys=KEYS), open_model=opening(oracle))
    async with app.router.lifespan_context(app), serving(app) as url:

        @asynccontextmanager
        async def connect(headers: dict[str, str]) -> AsyncIterator[Client]:
            async with (
                httpx2.AsyncClient(headers=headers, timeout=120) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
            ):
                yield client

        async with httpx.AsyncClient(base_url=url, headers=ANNA, timeout=120) as http:
            await upload(http)
        yield connect


async def test_mcp_over_http(tmp_path: Path) -> None:
    async with server(tmp_path, Oracle()) as connect, connect(ANNA) as client:
        await tour(client)


async def test_run_outlives_its_call_over_http(tmp_path: Path) -> None:
    oracle = Oracle()
    oracle.free.clear()
    async with server(tmp_path, oracle) as connect, connect(ANNA) as client, connect(BEN) as other:
        await outlive(client, oracle.asked, oracle.free, lambda: len(oracle.requests))
        assert value(await other.call_tool("runs", {}))["result"] == []
        assert "There is no thread" in await refused(other, "resume", thread="mine")


async def test_unusable_request_is_refused_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with server(tmp_path, Oracle()) as connect, connect(ANNA) as client:
        with pytest.raises(MCPError, match="Did you mean light") as missing:
            await client.read_resource("sleuth://documents/lights.md")
        with pytest.raises(MCPError, match="Unknown prompt") as unknown:
            await client.get_prompt("answer")
        with pytest.raises(MCPError, match="Missing required arguments"):
            await client.get_prompt("find_sources")
        assert missing.value.code == unknown.value.code == INVALID_PARAMS
        assert "settings.top_k is an integer of more than 64 bits" in await refused(
            client, "ask", question=QUESTION, settings={"top_k": 2**64}
        )
    assert [record.message for record in caplog.records if record.exc_info] == []


async def test_failed_run_is_resumed_by_the_tool(tmp_path: Path) -> None:
    oracle = Oracle()
    knows, oracle.said = oracle.said, lambda _request: ModelUnavailable("It is down.")
    async with server(tmp_path, oracle) as connect, connect(ANNA) as client:
        said = await refused(client, "ask", **PLAIN)
        assert said.startswith("Error executing tool ask: It is down. To continue, call `resume` with its thread, ")
        oracle.said = knows
        thread = said.rstrip(".").rsplit(" ", 1)[-1]
        assert value(await client.call_tool("resume", {"thread": thread}))["text"] == "Edric Gannow"


async def test_key_cannot_access_data_of_another_owner(tmp_path: Path) -> None:
    async with server(tmp_path, Oracle()) as connect:
        async with connect(ANNA) as anna:
            thread = value(await anna.call_tool("ask", PLAIN))["thread"]
        async with connect(BEN) as ben:
            assert "There is no thread" in await refused(ben, "resume", thread=thread)
            assert "There is no document" in await refused(ben, "get_document", id="light.md")
            assert "no documents" in await refused(ben, "search", query="light")
            assert "no documents" in await refused(ben, "ask", **PLAIN)
