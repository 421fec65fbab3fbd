"""OpenAI's Responses and Embeddings APIs with the official client, and what is refused of all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import openai
import pytest
from asgi_server import serving as listening
from hashing_embedder import HashingEmbedder
from serve_scene import ANNA, KEYS, QUESTION, Oracle, opening, upload

from sleuth.studio.server.app import create_app
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


@asynccontextmanager
async def served(
    folder: Path, oracle: Oracle, *, embedder: HashingEmbedder | None = None
) -> AsyncIterator[tuple[openai.AsyncOpenAI, httpx.AsyncClient]]:
    """Yield the client of a server with Anna's documents, and an HTTP client."""
    settings = Settings(home=folder, embedder="hashing" if embedder else "none", api_keys=KEYS)
    app = create_app(settings, open_model=opening(oracle), embedder=embedder)
    async with (
        app.router.lifespan_context(app),
        listening(app) as url,
        httpx.AsyncClient(base_url=url, headers=ANNA, timeout=60, trust_env=False) as http,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="apple-secret", max_retries=0) as client,
    ):
        await upload(http)
        yield client, http


async def test_response_has_the_answer_its_citations_and_usage(tmp_path: Path, oracle: Oracle) -> None:
    async with served(tmp_path, oracle) as (client, http):
        made = await client.responses.create(model="plain-rag", input=QUESTION)
        assert made.output_text.startswith("Edric Gannow")
        assert (made.status, made.usage and made.usage.output_tokens) == ("completed", 13)
        (message,) = made.output
        assert message.type == "message"
        (part,) = message.content
        assert part.type == "output_text"
        (annotation,) = part.annotations
        assert annotation.type == "url_citation"
        assert (annotation.title, part.text[annotation.start_index : annotation.end_index]) == (
            "The Pellowrig Light",
            "[1]",
        )
        thread = (made.metadata or {})["thread"]
        address = urlsplit(annotation.url)
        assert f"{address.scheme}://{address.netloc}" == str(http.base_url).rstrip("/")
        place, _, query = address.fragment.partition("?")
        assert place == f"/runs/{thread}"
        assert (await http.get(annotation.url)).status_code == 200
        (passage,) = parse_qs(query)["passage"]
        assert "Gannow" in (await http.get(f"/v1/passages/{passage.replace('#', '%23')}")).json()["text"]


async def test_streamed_response_is_the_same(tmp_path: Path, oracle: Oracle) -> None:
    async with served(tmp_path, oracle) as (client, _):
        whole = await client.responses.create(model="plain-rag", input=QUESTION)
        turns: Any = [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        ]
        async with client.responses.stream(model="plain-rag", input=QUESTION) as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        assert final.output_text == whole.output_text
        assert events[0].type == "response.created"
        assert events[-1].type == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        followed = await client.responses.create(model="plain-rag", input=turns)
        assert followed.output_text == whole.output_text


async def test_failed_run_is_a_failed_response(tmp_path: Path, oracle: Oracle) -> None:
    async with served(tmp_path, oracle) as (client, _):
        oracle.said = lambda _request: ModelUnavailable("It is down.")
        with pytest.raises(openai.InternalServerError, match="It is down"):
            await client.responses.create(model="plain-rag", input=QUESTION)
        stream = await client.responses.create(model="plain-rag", input=QUESTION, stream=True)
        *_, last = [event async for event in stream]
        assert last.type == "response.failed"
        assert last.response.error
        assert last.response.error.message == "It is down."


async def test_closed_response_cancels_its_run(tmp_path: Path, oracle: Oracle) -> None:
    async with served(tmp_path, oracle) as (client, http):
        oracle.free.clear()
        stream = await client.responses.create(model="plain-rag", input=QUESTION, stream=True)
        await oracle.asked.wait()
        await stream.close()
        async with asyncio.timeout(300):
            while (await http.get("/v1/runs")).json()[0]["state"] != "stopped":  # noqa: ASYNC110
                await asyncio.sleep(0.05)


FUNCTION = {"type": "function", "name": "f", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("chat/completions", {"tools": [FUNCTION]}, "tools"),
        ("chat/completions", {"functions": [FUNCTION]}, "tools"),
        ("chat/completions", {"response_format": {"type": "json_object"}}, "json_object"),
        ("chat/completions", {"n": 2}, "n: "),
        ("responses", {"tools": [FUNCTION]}, "tools"),
        ("responses", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "json_schema"),
        ("responses", {"background": True}, "/v1/runs"),
        ("responses", {"previous_response_id": "resp-1"}, "whole conversation"),
        ("responses", {"input": []}, "empty"),
    ],
)
async def test_what_is_not_supported_is_refused(
    tmp_path: Path, oracle: Oracle, path: str, given: dict[str, Any], said: str
) -> None:
    async with served(tmp_path, oracle) as (_, http):
        asked = {"input": QUESTION} if path == "responses" else {"messages": [{"role": "user", "content": QUESTION}]}
        reply = await http.post(f"/v1/{path}", json={"model": "plain-rag", **asked, **given})
        assert (reply.status_code, said in reply.json()["error"]["message"]) == (400, True), reply.text
        assert oracle.requests == []
        harmless = {"tools": [], "response_format": {"type": "text"}, "text": {"format": {"type": "text"}}}
        assert (await http.post(f"/v1/{path}", json={"model": "plain-rag", **asked, **harmless})).status_code == 200


async def test_embeddings_are_those_of_the_passages(tmp_path: Path, oracle: Oracle) -> None:
    embedder = HashingEmbedder()
    async with served(tmp_path, oracle, embedder=embedder) as (client, http):
        texts = ["a light", "a mole"]
        packed = await client.embeddings.create(model="hashing", input=texts)
        plain = await client.embeddings.create(model="hashing", input="a mole", encoding_format="float")
        wanted = HashingEmbedder().embed_passages(texts)
        for row, found in zip(wanted, packed.data, strict=True):
            assert found.embedding == pytest.approx(row.tolist())
        assert plain.data[0].embedding == pytest.approx(wanted[1].tolist())
        for given in (
            {"model": "other", "input": "a"},
            {"model": "hashing", "input": ""},
            {"model": "hashing", "input": []},
        ):
            assert (await http.post("/v1/embeddings", json=given)).status_code == 400, given


async def test_server_without_an_embedder_embeds_nothing(tmp_path: Path, oracle: Oracle) -> None:
    async with served(tmp_path, oracle) as (_, http):
        reply = await http.post("/v1/embeddings", json={"model": "none", "input": "a"})
        assert (reply.status_code, "SLEUTH_EMBEDDER" in reply.json()["error"]["message"]) == (400, True)
