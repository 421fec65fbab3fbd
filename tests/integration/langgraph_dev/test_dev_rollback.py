"""Rollback through LangGraph's SDK, with the checkpointer of the development server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive, knowing, script
from dev_server import langgraph_dev
from langgraph_scene import PLAIN, said, texts
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from recording_proxy import CHAT, Said
from scripted_backend import Scripted
from serve_scene import QUESTION

TWO = ["Hello!", "Hello! What would you like to know?"]


@dataclass
class Held(Scripted):
    """While it is `held` no call is answered; `asked` is set by one that waits."""

    held: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if self.held and path == CHAT:
            self.asked.set()
            await self.free.wait()
        return await super().say(method, path, body)


@dataclass
class Scene:
    client: LangGraphClient
    backend: Held

    async def thread(self) -> str:
        """Create a thread with one turn."""
        made = str((await self.client.threads.create())["thread_id"])
        assert await self.turn(made, "Hello!") == TWO
        return made

    async def turn(self, thread: str, text: str) -> list[str]:
        return texts(await self.client.runs.wait(thread, "chat", input=said(text), context=PLAIN))

    async def begin(self, thread: str, text: str) -> str:
        """Start a turn that waits for the model."""
        self.backend.asked.clear()
        self.backend.held = True
        run = await self.client.runs.create(thread, "chat", input=said(text), context=PLAIN)
        await asyncio.wait_for(self.backend.asked.wait(), 120)
        return str(run["run_id"])

    def release(self) -> None:
        """Reply to the waiting call and to all later ones."""
        self.backend.held = False
        self.backend.free.set()
        self.backend.free = asyncio.Event()

    async def gone(self, thread: str, run: str) -> None:
        """Wait until the server has removed a run."""
        async with asyncio.timeout(300):
            while run in [each["run_id"] for each in await self.client.runs.list(thread)]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async def said(self, thread: str) -> list[str]:
        return texts((await self.client.threads.get_state(thread))["values"])

    async def history(self, thread: str) -> list[Any]:
        return [state["values"] for state in await self.client.threads.get_history(thread, limit=100)]


@pytest.fixture
async def backend() -> Held:
    return Held(script)


@pytest.fixture
async def scene(tmp_path: Path, backend: Held) -> AsyncIterator[Scene]:
    async with knowing(backend) as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        running = langgraph_dev(tmp_path, **environment)
        server = await asyncio.to_thread(running.__enter__)
        try:
            yield Scene(get_client(url=server.url), backend)
        finally:
            backend.free.set()
            await asyncio.to_thread(running.__exit__, None, None, None)


@pytest.mark.nightly
async def test_further_message_takes_the_place_of_a_run(scene: Scene) -> None:
    thread = await scene.thread()
    first = await scene.begin(thread, "And who built the light?")
    again = {"input": said(QUESTION), "context": PLAIN}
    run = await scene.client.runs.create(thread, "chat", **again, multitask_strategy="rollback")
    await scene.gone(thread, first)
    scene.release()
    await scene.client.runs.join(thread, run["run_id"])
    assert await scene.said(thread) == [*TWO, QUESTION, "Edric Gannow"]
    assert all("And who built the light?" not in texts(state) for state in await scene.history(thread))
    assert await scene.turn(thread, "Hello!") == [*TWO, QUESTION, "Edric Gannow", *TWO]
