"""The official OpenAI client against a server: whole and streamed, follow-ups, errors, hanging up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from asgi_server import serving as listening
from openai.types.chat import ChatCompletionMessageParam
from serve_scene import ANNA, BEN, KEYS, QUESTION, Oracle, opening, upload

from sleuth.agents.model import Request
from sleuth.studio.server.app import create_app
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
FOLLOWED: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be a pirate."},
    {"role": "user", "content": "Tell me about the Pellowrig Light."},
    {"role": "assistant", "content": "It is a lighthouse."},
    {"role": "user", "content": "Who built it?"},
]

Chat = Callable[[], AbstractAsyncContextManager[tuple[openai.AsyncOpenAI, httpx.AsyncClient]]]


@pytest.fixture
def chat(tmp_path: Path, oracle: Oracle) -> Chat:
    """Yield a server with Anna's documents, her OpenAI client, and an HTTP client."""

    @asynccontextmanager
    async def served() -> AsyncIterator[tuple[openai.AsyncOpenAI, httpx.AsyncClient]]:
        app = create_app(Settings(home=tmp_path, embedder="none", api_keys=KEYS), open_model=opening(oracle))
        async with (
            app.router.lifespan_context(app),
            listening(app) as url,
            httpx.AsyncClient(base_url=url, headers=ANNA, timeout=60, trust_env=False) as http,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="apple-secret", max_retries=0) as client,
        ):
            await upload(http)
            yield client, http

    return served


async def test_completion_has_answer_steps_and_citations(chat: Chat) -> None:
    async with chat() as (client, http):
        made = await client.chat.completions.create(model="plain-rag", messages=ASKED)
        [choice] = made.choices
        assert choice.finish_reason == "stop"
        text = choice.message.content or ""
        assert text.startswith("Edric Gannow [1]")
        assert "“built by Edric Gannow”" in text
        [annotation] = choice.message.annotations or []
        cited = annotation.url_citation
        assert text[cited.start_index : cited.end_index] == "[1]"
        assert cited.url.startswith(f"{str(http.base_url).rstrip('/')}/#/runs/")
        extra: Any = choice.message
        assert "retrieve" in extra.reasoning_content
        assert made.usage
        assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens > 100
        about: Any = made
        run = (await http.get(f"/v1/runs/{about.metadata['thread']}")).json()
        assert run["answer"]["text"] == "Edric Gannow"


async def test_completion_stream_has_the_same_content(chat: Chat) -> None:
    async with chat() as (client, _):
        whole = (await client.chat.completions.create(model="plain-rag", messages=ASKED)).choices[0]
        stream = await client.chat.completions.create(
            model="plain-rag", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        deltas: list[Any] = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        extra: Any = whole.message
        assert deltas[0].role == "assistant"
        assert "".join(delta.content or "" for delta in deltas) == whole.message.content
        assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == extra.reasoning_content
        (annotated,) = [delta.annotations for delta in deltas if hasattr(delta, "annotations")]
        cited = [{**each["url_citation"], "url": ""} for each in annotated]
        assert cited == [{**each.url_citation.model_dump(), "url": ""} for each in whole.message.annotations or []]
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage
        assert chunks[-1].usage.total_tokens > 100


async def test_completion_rewrites_a_follow_up(chat: Chat, oracle: Oracle) -> None:
    knows = oracle.said

    def said(request: Request) -> Any:
        return {"question": QUESTION} if request.role == "rewriter" else knows(request)

    oracle.said = said
    async with chat() as (client, http):
        made: Any = await client.chat.completions.create(model="plain-rag", messages=FOLLOWED)
        assert made.metadata["question"] == QUESTION
        rewriting = next(request for request in oracle.requests if request.role == "rewriter")
        assert "It is a lighthouse." in rewriting.text()
        assert "pirate" not in "".join(request.text() for request in oracle.requests)
        run = (await http.get(f"/v1/runs/{made.metadata['thread']}")).json()
        assert run["thread"]["question"] == QUESTION
        assert made.usage.prompt_tokens == run["cost"]["prompt_tokens"] + 100, "rewriting was not counted"


async def test_errors_raise_the_exceptions_of_the_client(chat: Chat, oracle: Oracle) -> None:
    async with chat() as (client, http):
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="gpt-4o", messages=ASKED)
        assert unknown.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="plain-rag", messages=[{"role": "user", "content": " "}])
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(
                model="plain-rag", messages=ASKED, extra_body={"sleuth": {"values": {"k": 1}}}
            )
        with pytest.raises(openai.BadRequestError, match="no documents"):
            await client.with_options(api_key="plum-secret").chat.completions.create(model="plain-rag", messages=ASKED)
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="wrong").models.list()
        oracle.said = lambda _: ModelUnavailable("The model server is down.")
        with pytest.raises(openai.InternalServerError, match="is down") as down:
            await client.chat.completions.create(model="plain-rag", messages=ASKED)
        assert down.value.status_code == 502
        with pytest.raises(openai.APIError, match="is down"):
            async for _ in await client.chat.completions.create(model="plain-rag", messages=ASKED, stream=True):
                pass
        assert (await http.get("/v1/runs", headers=BEN)).json() == []


async def test_models_are_methods(chat: Chat) -> None:
    async with chat() as (client, _):
        names = [model.id for model in (await client.models.list()).data]
        assert {"plain-rag", "par-rag", "auto"} <= set(names)
        assert (await client.models.retrieve("par-rag")).owned_by == "sleuth"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_closing_the_connection_cancels_a_resumable_run(chat: Chat, oracle: Oracle, streamed: bool) -> None:
    oracle.free.clear()
    async with chat() as (client, http):
        asking = asyncio.create_task(_ask(client, streamed))
        await oracle.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        [row] = await _settled(http)
        assert row["status"] == "interrupted"
        oracle.free.set()
        assert (await http.post(f"/v1/runs/{row['id']}/resume")).status_code == 202
        assert '"answered"' in (await http.get(f"/v1/runs/{row['id']}/events")).text


async def _ask(client: openai.AsyncOpenAI, streamed: bool) -> None:
    if not streamed:
        await client.chat.completions.create(model="plain-rag", messages=ASKED)
        return
    async for _ in await client.chat.completions.create(model="plain-rag", messages=ASKED, stream=True):
        pass


async def _settled(http: httpx.AsyncClient) -> Any:
    """Return the list of runs when none is running."""
    async with asyncio.timeout(300):
        while True:
            rows = (await http.get("/v1/runs")).json()
            if not any(row["status"] == "running" for row in rows):
                return rows
            await asyncio.sleep(0.05)
