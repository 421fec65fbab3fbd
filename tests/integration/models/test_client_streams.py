"""Replies read while they are written: the same replies, faults and retries as when they are read whole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from model_server import (
    EVERYTHING,
    ModelServer,
    Spoken,
    chunks,
    completion,
    cut,
    forever,
    garbage,
    hang,
    serving,
    status,
)
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from sleuth.agents.llm.client import RETRIES, LLMClient
from sleuth.agents.llm.completions import STREAMED
from sleuth.agents.model import Message, Request, Sampling
from sleuth.tools.errors import ContextTooLong, ModelError, ModelTimeout, ModelUnavailable
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

LIMIT = 120
"""Seconds that anything may take on a busy machine."""


class Ear:
    """Hears the words; "!" is a reset."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def delta(self, text: str) -> None:
        self.heard.append(text)

    def reset(self) -> None:
        self.heard.append("!")

    async def hears(self, text: str) -> None:
        """Until it has heard so much."""
        async with asyncio.timeout(LIMIT):
            while "".join(self.heard) != text:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)


def asked(listener: Ear | None = None, call_id: str = "call-1", **options: Any) -> Request:
    messages = (Message(role="user", content="Where is Varn?"),)
    return Request(
        call_id=call_id,
        role="drafter",
        prompt="drafter/draft",
        messages=messages,
        input={},
        listener=listener,
        **options,
    )


@asynccontextmanager
async def gateway(server: ModelServer, home: Path, **options: Any) -> AsyncIterator[LLMClient]:
    async with serving(server), LLMClient.open(Settings(model_url=server.url, home=home, **options)) as opened:
        yield opened


FAR = completion("In the far east.")
TOKENS = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in ("In ", "the ", "far ", "east.", "<end>")]


def with_tokens() -> dict[str, Any]:
    choice = FAR["choices"][0] | {"logprobs": {"content": TOKENS}, "finish_reason": "length"}
    return {**FAR, "choices": [choice]}


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
async def test_the_reply_is_the_same_whether_it_is_heard_or_not(options: dict[str, Any], tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    reply = with_tokens() if "sampling" in options else FAR
    server.script.extend([reply, reply])
    async with gateway(server, tmp_path) as model:
        heard = await model.call(asked(ear, **options))
        whole = await model.call(asked(**options))
    assert {**heard, "seconds": 0} == {**whole, "seconds": 0}
    assert heard["usage"] == {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3}
    assert ear.heard == ["In ", "the ", "far ", "east."]
    first, second = server.calls
    assert first == {**second, **STREAMED}, "it asks for nothing else"


@pytest.mark.parametrize(
    "broken",
    [
        Spoken(chunks(FAR)[:3], cut),
        Spoken(chunks(FAR)[:3]),
        Spoken([*chunks(FAR)[:3], {"error": {"message": "busy", "code": 503}}]),
        garbage(f"data: {chunks(FAR)[1]}\n\n", "text/event-stream"),
        garbage("", "text/event-stream"),
        status(503),
        garbage("{not json"),
    ],
    ids=["cut", "ended early", "error", "half an event", "nothing", "503", "garbage"],
)
async def test_a_stream_that_breaks_is_asked_for_again_and_its_words_taken_back(broken: Any, tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    server.script.extend([broken, FAR])
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked(ear)))["text"] == "In the far east."
    assert [headers["x-sleuth-call"] for headers in server.headers] == ["call-1", "call-1"]
    assert ear.heard[-4:] == ["In ", "the ", "far ", "east."]
    assert ear.heard[:-4] in ([], ["!"], ["In ", "the ", "!"])


@pytest.mark.parametrize(
    ("broken", "kind", "told", "times"),
    [
        (Spoken(chunks(FAR)[:3], cut), ModelUnavailable, "No model server answers", RETRIES + 1),
        (Spoken(chunks(FAR)[:3]), ModelUnavailable, "after retries: its stream ends before", RETRIES + 1),
        (Spoken([{"error": {"message": "out of memory"}}]), ModelUnavailable, "status 500: out of", RETRIES + 1),
        (Spoken([{"error": {"message": "maximum context length is 9", "code": 400}}]), ContextTooLong, "too long", 1),
        (Spoken([{"error": {"message": "bad seed", "code": 400}}]), ModelError, "status 400: .*bad seed", 1),
    ],
    ids=["cut", "ended early", "error", "too long", "refused"],
)
async def test_a_lasting_fault_is_named_as_for_whole_replies(
    broken: Any, kind: type[Exception], told: str, times: int, tmp_path: Path
) -> None:
    server, ear = ModelServer(), Ear()
    server.script.extend([broken] * 9)
    async with gateway(server, tmp_path) as model:
        with pytest.raises(kind, match=told) as raised:
            await model.call(asked(ear))
    assert type(raised.value) is kind
    assert len(server.calls) == times
    assert ear.heard[-1] == "!"


async def test_a_stream_that_falls_silent_is_left_after_the_timeout(tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    server.script.append(Spoken(chunks(FAR)[:3], forever))
    async with gateway(server, tmp_path, timeout=3) as model:
        with pytest.raises(ModelTimeout, match="no reply within 3 s: see SLEUTH_TIMEOUT"):
            await model.call(asked(ear))
        await asyncio.wait_for(server.gone.wait(), LIMIT)
    assert ear.heard == ["In ", "the ", "!"]


async def test_cancelling_closes_the_stream_and_frees_its_slot(tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    server.script.append(Spoken(chunks(FAR)[:3], forever))
    async with gateway(server, tmp_path, concurrency=1) as model:
        task = asyncio.create_task(model.call(asked(ear)))
        await ear.hears("In the ")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), LIMIT)
        assert (await model.call(asked(Ear(), "call-2")))["text"] == "fine"


async def test_words_are_heard_before_the_reply_has_ended(tmp_path: Path) -> None:
    server, ear, go = ModelServer(), Ear(), asyncio.Event()
    server.script.append(Spoken(chunks(FAR), go.wait))
    async with gateway(server, tmp_path) as model:
        task = asyncio.create_task(model.call(asked(ear)))
        await ear.hears("In the far east.")
        assert not task.done()
        go.set()
        assert (await task)["text"] == "In the far east."


async def test_calls_side_by_side_are_heard_each_by_its_own(tmp_path: Path) -> None:
    ears = [Ear() for _ in range(6)]
    async with gateway(ModelServer(), tmp_path) as model:
        await asyncio.gather(*(model.call(asked(ear, f"call-{at}")) for at, ear in enumerate(ears)))
    assert [ear.heard for ear in ears] == [["fine"]] * 6


async def test_a_server_that_answers_in_one_piece_although_asked_to_stream(tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    async with gateway(server, tmp_path) as model:
        server.supports = EVERYTHING - {"stream"}
        assert (await model.call(asked(ear)))["text"] == "fine"
    assert "".join(ear.heard).strip("!") == ""


async def test_a_server_that_streams_although_it_was_not_asked_to(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(Spoken(chunks(FAR)))
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked()))["text"] == "In the far east."


async def test_a_server_that_cannot_stream_is_not_asked_to(tmp_path: Path) -> None:
    server, ear = ModelServer(supports=EVERYTHING - {"stream"}), Ear()
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked(ear)))["text"] == "fine"
    assert not server.calls[0].get("stream")
    assert ear.heard == []


async def test_a_server_whose_streams_have_no_usage_is_read_whole(tmp_path: Path) -> None:
    class Stingy(ModelServer):
        def spoken(self, reply: Spoken) -> AsyncIterator[str]:
            return super().spoken(Spoken(reply.chunks[:-1], reply.then))

    server, ear = Stingy(), Ear()
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(ear))
    assert reply["usage"]["prompt_tokens"] == 7
    assert not server.calls[0].get("stream")
    assert ear.heard == []


async def test_streams_are_not_requested_from_an_unsuitable_relay(tmp_path: Path) -> None:
    class Relayed(ModelServer):
        async def replied(self, reply: dict[str, Any], request: HttpRequest) -> Response:
            said = await super().replied(reply, request)
            if isinstance(said, StreamingResponse):
                said.headers["content-type"] = "application/json"
            return said

    server, ear = Relayed(), Ear()
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked(ear)))["text"] == "fine"
    assert not server.calls[0].get("stream")
    assert ear.heard == []


async def test_a_server_that_hangs_before_its_first_word(tmp_path: Path) -> None:
    server, ear = ModelServer(), Ear()
    server.script.append(hang)
    async with gateway(server, tmp_path, timeout=1) as model:
        with pytest.raises(ModelTimeout):
            await model.call(asked(ear))
        await asyncio.wait_for(server.gone.wait(), LIMIT)
    assert ear.heard == []
