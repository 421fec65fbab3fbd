"""Streamed replies equal whole ones, and are only requested from servers that stream well."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from model_client import Recorder, connected, request
from model_server import EVERYTHING, ModelServer, Spoken, chunks, completion
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from sleuth.agents.llm.completions import STREAMED
from sleuth.agents.model import Sampling

FAR = completion("In the far east.")
TOKENS = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in ("In ", "the ", "far ", "east.", "<end>")]
SCORED = {**FAR, "choices": [FAR["choices"][0] | {"logprobs": {"content": TOKENS}, "finish_reason": "length"}]}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"schema": {"type": "object"}},
        {"choices": ("yes", "no")},
        {"sampling": Sampling(max_tokens=5, top_logprobs=20)},
    ],
    ids=["plain", "schema", "choices", "logprobs"],
)
async def test_streamed_reply_equals_the_whole_one(options: dict[str, Any], tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.extend([SCORED if "sampling" in options else FAR] * 2)
    async with connected(server, tmp_path) as model:
        streamed = await model.call(request(listener=recorder, **options))
        whole = await model.call(request(**options))
    assert {**streamed, "seconds": 0} == {**whole, "seconds": 0}
    assert streamed["usage"] == {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3}
    assert recorder.texts == ["In ", "the ", "far ", "east."]
    first, second = server.calls
    assert first == {**second, **STREAMED}, "the requests differ in nothing else"


async def test_tokens_are_received_before_the_reply_has_ended(tmp_path: Path) -> None:
    server, recorder, go = ModelServer(), Recorder(), asyncio.Event()
    server.script.append(Spoken(chunks(FAR), go.wait))
    async with connected(server, tmp_path) as model:
        task = asyncio.create_task(model.call(request(listener=recorder)))
        await recorder.received("In the far east.")
        assert not task.done()
        go.set()
        assert (await task)["text"] == "In the far east."


async def test_whole_reply_to_a_stream_request_is_accepted(tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    async with connected(server, tmp_path) as model:
        server.supports = EVERYTHING - {"stream"}
        assert (await model.call(request(listener=recorder)))["text"] == "fine"
    assert recorder.texts == ["fine"]


class WithoutUsage(ModelServer):
    """Server whose streams lack the usage."""

    def spoken(self, reply: Spoken) -> AsyncIterator[str]:
        return super().spoken(Spoken(reply.chunks[:-1], reply.then))


class Relayed(ModelServer):
    """Server behind a relay that changes the content type of streams."""

    async def replied(self, reply: dict[str, Any], request: HttpRequest) -> Response:
        response = await super().replied(reply, request)
        if isinstance(response, StreamingResponse):
            response.headers["content-type"] = "application/json"
        return response


@pytest.mark.parametrize(
    "server",
    [ModelServer(supports=EVERYTHING - {"stream"}), WithoutUsage(), Relayed()],
    ids=["unsupported", "no usage", "relay"],
)
async def test_streams_are_not_requested_from_an_unsuitable_server(server: ModelServer, tmp_path: Path) -> None:
    recorder = Recorder()
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(listener=recorder))
    assert (reply["text"], reply["usage"]["prompt_tokens"]) == ("fine", 7)
    assert not server.calls[0].get("stream")
    assert recorder.texts == []
