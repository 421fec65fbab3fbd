"""Server-sent events as clients read them."""

import json
from collections.abc import AsyncIterator

import httpx

from sleuth.studio.server.protocols.streaming import EventStream, encode_event

TEXT = "two\u2028lines\u2029and\x85more\nof them"


async def test_event_with_unusual_line_ends_is_one_line_of_data() -> None:
    async def events() -> AsyncIterator[str]:
        yield encode_event(json.dumps({"text": TEXT}, ensure_ascii=False), event="answer", id=3)

    transport = httpx.ASGITransport(EventStream.of(events()))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        reply = await client.get("/")
    event, data, id = reply.text.removesuffix("\n\n").split("\n")
    assert (event, id, reply.headers["content-type"]) == ("event: answer", "id: 3", "text/event-stream; charset=utf-8")
    assert json.loads(data.removeprefix("data: ")) == {"text": TEXT}
