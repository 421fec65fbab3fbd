"""The development server's checkpointer: runs rolled back."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command
from scenes import Shelf
from scripted_model import ScriptedModel

from sleuth.graphs.chat import graph as chat
from sleuth.graphs.chat.small_talk import REPLIES
from sleuth.graphs.core.context import Budget, Context
from sleuth.graphs.runs.execution import compile_method
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.studio.langgraph_dev.checkpointer import DevCheckpoints
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Passage

GREETING = REPLIES["hello"]
LIGHT = Passage(id="p", document_id="d", title="Light", text="The light was built by Oda.", start=0, end=27)


class Conversation:
    """A chat thread whose turns are named runs, each with its own scripted model."""

    def __init__(self, file: Path, thread: str) -> None:
        self.file, self.thread = file, thread

    async def send(self, run: str, given: str | Command[Any], replies: list[Any]) -> None:
        model = ScriptedModel(replies)
        sent = {"messages": [("user", given)]} if isinstance(given, str) else given
        settings = chat.Settings(method="plain-rag")
        context = Context(
            model=model, retriever=Shelf([LIGHT]), archive=MemoryArchive(), settings=settings, budget=Budget()
        )
        about = {"run_id": run} | ({"graph_id": "chat"} if run == "1" else {})
        async with opened(self.file) as saver:
            context = replace(context, subruns=CheckpointerSubruns(saver=saver, context=context))
            await compile_method("chat", saver).ainvoke(sent, {**self.place, "metadata": about}, context=context)
        model.done()

    async def small_talk(self, run: str, text: str) -> None:
        await self.send(run, text, ["small talk", {"needs_search": False, "reply": "hello"}])

    @property
    def place(self) -> Any:
        return {"configurable": {"thread_id": self.thread}}

    async def texts(self) -> list[str]:
        """Return the messages as a new process reads them."""
        async with opened(self.file) as saver:
            state = await compile_method("chat", saver).aget_state(self.place)
        return [message.text.split(" [1]")[0] for message in state.values.get("messages", [])]

    async def history(self) -> list[Any]:
        async with opened(self.file) as saver:
            states = [state async for state in compile_method("chat", saver).aget_state_history(self.place)]
        return [(state.config["configurable"]["checkpoint_id"], state.values) for state in states]

    async def roll_back(self, *runs: str) -> None:
        async with opened(self.file) as saver:
            await saver.adelete_for_runs(runs)


def opened(file: Path) -> Any:
    return DevCheckpoints.open(file, JsonPlusSerializer())


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Conversation]:
    """Yield a conversation with one finished turn."""
    begun = Conversation(tmp_path / "c.sqlite", str(uuid4()))
    await begun.small_talk("1", "One")
    yield begun


async def test_rollback_removes_a_run_from_the_middle(talk: Conversation) -> None:
    await talk.small_talk("2", "Two")
    await talk.small_talk("3", "Three")
    before = await talk.history()
    kept = await _of_runs(talk, "1", "3")
    await talk.roll_back("2")
    assert await talk.history() == [each for each in before if each[0] in kept]
    await talk.small_talk("4", "Four")
    assert (await talk.texts())[-4:] == ["Three", GREETING, "Four", GREETING]


async def _of_runs(talk: Conversation, *runs: str) -> set[str]:
    async with opened(talk.file) as saver:
        found = [each async for each in saver.alist(talk.place)]
    return {str(each.config["configurable"]["checkpoint_id"]) for each in found if each.metadata["run_id"] in runs}


async def test_rollback_of_a_reply_allows_another_reply(talk: Conversation) -> None:
    read = {"answerable": True, "answer": "Oda", "citations": [{"source": 1, "quote": "built by Oda"}]}
    await talk.send("2", "Who built it?", ["ambiguous", {"question": "Built what?", "options": []}])
    for run, reply in (("3", "the dam"), ("4", "the light")):
        await talk.send(run, Command(resume=reply), [{"question": f"Who built {reply}?"}, read])
        assert (await talk.texts())[-3:] == ["Built what?", reply, "Oda"]
        await talk.roll_back("3")
    assert (await talk.texts())[-3:] == ["Built what?", "the light", "Oda"]


async def test_rollback_of_an_unknown_run_changes_nothing(talk: Conversation) -> None:
    before = await talk.history()
    await talk.roll_back()
    await talk.roll_back("7")
    assert await talk.history() == before
