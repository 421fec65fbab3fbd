"""The chat `talk` over the runs API."""

import asyncio
from typing import Any

import httpx
from serve_scene import Oracle

AGAIN = "And the light?"
STOPPED = "This message was not answered: it was stopped."


async def send(client: httpx.AsyncClient, text: str, **values: Any) -> httpx.Response:
    return await client.post("/v1/runs", json={"question": text, "method": "chat", "thread": "talk", "values": values})


async def say(client: httpx.AsyncClient, *texts: str, **values: Any) -> None:
    """Send messages, which are accepted."""
    for text in texts:
        sent = await send(client, text, **values)
        assert sent.status_code == 201, sent.text


async def say_held(client: httpx.AsyncClient, oracle: Oracle, text: str, **values: Any) -> None:
    """Send a message whose first model call waits; return when it waits."""
    oracle.hold()
    await say(client, text, **values)
    await asyncio.wait_for(oracle.asked.wait(), 120)


async def messages(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = (await client.get("/v1/runs/talk")).json()["state"]["messages"]
    return shown


async def texts(client: httpx.AsyncClient) -> list[str]:
    return [message["content"].split(" [1]")[0] for message in await messages(client)]
