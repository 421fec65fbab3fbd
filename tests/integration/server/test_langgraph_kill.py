"""LangGraph's SDK and `sleuth serve` as a process: a run survives `kill -9`, and its client joins it again."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive, knowing, script
from langgraph_scene import PLAIN, client_at, said, texts
from recording_proxy import CHAT, Said
from scripted_backend import Scripted, prompt_of
from serve_process import sleuth_serve
from serve_scene import QUESTION

pytestmark = pytest.mark.integration


@dataclass
class Held(Scripted):
    """The reader waits until it is `free`."""

    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path == CHAT and prompt_of(json.loads(body)) == "reader/read":
            self.waiting.set()
            await self.free.wait()
        return await super().say(method, path, body)


@pytest.mark.nightly
async def test_run_is_joined_after_a_kill_without_repeated_updates(tmp_path: Path) -> None:
    backend = Held(script)
    async with knowing(backend) as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        seen: list[Any] = []
        async with sleuth_serve(tmp_path, **environment) as served:
            sdk = client_at(f"{served.url}/langgraph")
            thread = (await sdk.threads.create())["thread_id"]
            run = (await sdk.runs.create(thread, "chat", input=said(QUESTION), context=PLAIN))["run_id"]
            await asyncio.wait_for(backend.waiting.wait(), 120)
            async for part in sdk.runs.join_stream(thread, run, stream_mode="updates"):
                seen.append(part)
                if part.event == "updates" and "plan" in part.data:
                    break
            served.kill()
        backend.free.set()
        async with sleuth_serve(tmp_path, **environment) as served:
            sdk = client_at(f"{served.url}/langgraph")
            rest = sdk.runs.join_stream(thread, run, stream_mode=["updates", "values"], last_event_id=seen[-1].id)
            parts = [part async for part in rest]
            assert texts(await sdk.runs.join(thread, run))[-1] == "Edric Gannow"
            assert [each["run_id"] for each in await sdk.runs.list(thread)] == [run]
    nodes = [node for part in [*seen, *parts] if part.event == "updates" for node in part.data]
    assert nodes == ["classify", "plan", "act", "answer"]
    assert [part.event for part in parts][-1] == "end"
    final = [part.data for part in parts if part.event == "values"][-1]
    assert texts(final) == [QUESTION, "Edric Gannow"]
