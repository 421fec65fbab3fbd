"""Copy and deletion of threads through LangGraph's SDK, with the checkpointer of the development server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive, knowing
from dev_server import langgraph_dev
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError
from serve_scene import QUESTION

pytestmark = pytest.mark.integration

PLAIN = {"method": "plain-rag"}
TWO = ["Hello!", "Hello! What would you like to know?"]


@dataclass
class Scene:
    client: LangGraphClient

    async def thread(self) -> str:
        """Create a thread with one turn."""
        made = str((await self.client.threads.create())["thread_id"])
        assert await self.turn(made, "Hello!") == TWO
        return made

    async def turn(self, thread: str, text: str) -> list[str]:
        given = {"messages": [{"role": "user", "content": text}]}
        return texts(await self.client.runs.wait(thread, "chat", input=given, context=PLAIN))

    async def said(self, thread: str) -> list[str]:
        return texts((await self.client.threads.get_state(thread))["values"])

    async def history(self, thread: str) -> list[Any]:
        return [state["values"] for state in await self.client.threads.get_history(thread, limit=100)]


def texts(state: Any) -> list[str]:
    return [message["content"].split(" [1]")[0] for message in state["messages"]]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with knowing() as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        running = langgraph_dev(tmp_path, **environment)
        server = await asyncio.to_thread(running.__enter__)
        try:
            yield Scene(get_client(url=server.url))
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


@pytest.mark.nightly
async def test_dev_server_copies_and_deletes_threads(scene: Scene) -> None:
    """Test both with one server, which is slow to start."""
    await a_thread_is_copied(scene)
    await threads_are_removed(scene)


async def a_thread_is_copied(scene: Scene) -> None:
    thread = await scene.thread()
    await scene.client.threads.copy(thread)
    copies = await scene.client.threads.search(limit=1, sort_by="created_at", sort_order="desc")
    copy = copies[0]["thread_id"]
    assert copy != thread
    assert await scene.history(copy) == await scene.history(thread)
    await scene.turn(copy, QUESTION)
    assert await scene.said(thread) == TWO
    assert await scene.said(copy) == [*TWO, QUESTION, "Edric Gannow"]


async def threads_are_removed(scene: Scene) -> None:
    gone, pruned, kept = [await scene.thread() for _ in range(3)]
    await scene.client.threads.delete(gone)
    assert await scene.client.threads.prune([pruned]) == {"pruned_count": 1}
    for thread in (gone, pruned):
        with pytest.raises(NotFoundError):
            await scene.client.threads.get(thread)
        await scene.client.threads.create(thread_id=thread, graph_id="chat")
        assert not await scene.history(thread)
    assert await scene.said(kept) == TWO
