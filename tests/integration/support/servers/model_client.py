"""Clients of scripted model servers, their requests, and a listener that records."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from model_server import ModelServer, serving

from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Request
from sleuth.tools.settings import Settings

LIMIT = 120
"""Seconds that anything may take on a busy machine."""


class Recorder:
    """Listener that records the texts of a reply; "!" is a reset."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def delta(self, text: str) -> None:
        self.texts.append(text)

    def reset(self) -> None:
        self.texts.append("!")

    async def received(self, text: str = "") -> None:
        """Wait for this text, or for any."""
        async with asyncio.timeout(LIMIT):
            while not self.texts or text not in ("", "".join(self.texts)):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)


def request(text: str = "Where is Varn?", **options: Any) -> Request:
    fields = {
        "call_id": "call-1",
        "role": "drafter",
        "prompt": "drafter/draft",
        "messages": (Message(role="system", content="Be brief."), Message(role="user", content=text)),
        "input": {},
    }
    return Request(**fields | options)


@asynccontextmanager
async def connected(server: ModelServer, home: Path, **settings: Any) -> AsyncIterator[LLMClient]:
    """Serve the scripted replies and open a client of the server."""
    async with serving(server), LLMClient.open(Settings(model_url=server.url, home=home, **settings)) as client:
        yield client
