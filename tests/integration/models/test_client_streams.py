"""Streamed replies equal whole ones, also of servers that do not stream, or stream less than the whole reply."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from model_server import EVERYTHING, ModelServer, Recorder, Spoken, chunks, completion, connected, request
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from sleuth.agents.llm.client import ESTIMATED
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
    ],
    ids=["plain", "schema", "choices"],
)
async def test_streamed_reply_equals_the_whole_one(options: dict[str, Any], tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.extend([FAR] * 2)
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


async def test_reply_with_log_probabilities_is_not_streamed(tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.append(SCORED)
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(listener=recorder, sampling=Sampling(max_tokens=5, top_logprobs=20)))
    assert [each["token"] for each in reply["logprobs"] or []] == [each["token"] for each in TOKENS]
    assert not server.calls[0]["stream"]


class Odd(ModelServer):
    """Server behind a relay that changes the content type of streams, and drops their usage."""

    def spoken(self, reply: Spoken) -> AsyncIterator[str]:
        return super().spoken(Spoken(reply.chunks[:-1], reply.then))

    async def replied(self, reply: dict[str, Any], request: HttpRequest) -> Response:
        response = await super().replied(reply, request)
        response.headers["content-type"] = "application/json"
        return response


async def test_stream_without_usage_or_content_type_is_read(tmp_path: Path) -> None:
    recorder = Recorder()
    async with connected(Odd(), tmp_path) as model:
        reply = await model.call(request(listener=recorder))
    assert (reply["text"], recorder.texts, reply["warnings"]) == ("fine", ["fine"], [ESTIMATED])
