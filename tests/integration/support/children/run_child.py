"""A question asked in a process of its own, which may stop itself at any of its commits as `kill -9` would."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from hashing_embedder import HashingEmbedder
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.core.context import Services
from sleuth.graphs.core.triples import TripleStore
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import Sleuth, last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold
from sleuth.tools.types import Triple

TALKED = (("user", "Tell me about lights."), ("assistant", "Which of them?"))
"""Messages before a chat's question."""

APPROVED = {"decisions": [{"type": "approve"}]}
"""Reply to a plan."""

BEFORE = "before"
"""The thread of a run whose triples all runs have."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The run, and the number of commits before it dies; none: run to the end.

    Triples that a run reads are its own, so that each run has the same to read; those of the run `BEFORE` are all's.
    """

    settings: Settings
    method: str
    question: str
    thread: str
    values: dict[str, Any] = field(default_factory=dict)
    die_after: int | None = None


class Own:
    """The triples that one run has read, and those that an earlier one had."""

    def __init__(self, store: TripleStore, thread: str) -> None:
        self._store = store
        self._thread = thread

    async def get(self, fingerprints: Iterable[str], *, version: str) -> dict[str, list[Triple]]:
        wanted = list(fingerprints)
        before = await self._store.get(wanted, version=f"{BEFORE} {version}")
        return before | await self._store.get(wanted, version=f"{self._thread} {version}")

    async def put(self, found: Mapping[str, Sequence[Triple]], *, version: str) -> None:
        await self._store.put(found, version=f"{self._thread} {version}")


class Commits:
    """Counts what a saver commits, checkpoints and task writes; the process dies at the one of this number."""

    def __init__(self, saver: Any, die_at: int | None) -> None:
        self.number, self.checkpoints = 0, list[int]()
        self._die_at = die_at
        for name in ("aput", "aput_writes"):
            setattr(saver, name, self._counted(getattr(saver, name), is_checkpoint=name == "aput"))

    def _counted(self, write: Callable[..., Awaitable[Any]], *, is_checkpoint: bool) -> Callable[..., Awaitable[Any]]:
        async def committed(*given: Any, **named: Any) -> Any:
            made = await write(*given, **named)
            self.number += 1
            if is_checkpoint:
                self.checkpoints.append(self.number)
            if self.number == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        return committed


def run(job: Job, pipe: Connection) -> None:
    """Print "running" when the run is stored, and at the end its answer and commits; resume an existing thread."""
    asyncio.run(_run(job, pipe))


async def _run(job: Job, pipe: Connection) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(LLMClient.open(job.settings))
        await stack.enter_async_context(hold(job.settings.home, "shared", command="a test"))
        library = await stack.enter_async_context(await Collection.open(job.settings, embedder=HashingEmbedder()))
        store = await stack.enter_async_context(open_store(job.settings))
        commits = Commits(store.saver, job.die_after)
        triples = Own(library.triples(model=model.name_of("extractor")), job.thread)
        services = Services(model=model, retriever=library, embedder=library.embedder, triples=triples)
        runs = RunService(store, services)
        ask = _converse if job.method == "chat" else _ask
        answer = await ask(job, Sleuth(runs=runs, collection=library, settings=job.settings), pipe)
        pipe.send({"answer": answer, "commits": commits.number, "checkpoints": commits.checkpoints})


async def _ask(job: Job, app: Sleuth, pipe: Connection) -> dict[str, Any]:
    if not await app.runs.store.threads.exists(job.thread):
        await app.runs.start(RunRequest(question=job.question, method=job.method, values=job.values, thread=job.thread))
    pipe.send("running")
    return (await last_answer(app.runs.run(job.thread))).to_json()


async def _converse(job: Job, app: Sleuth, pipe: Connection) -> dict[str, Any]:
    """A turn of the chat in an application with this checkpointer; a plan that is shown is approved."""
    saver = app.runs.store.saver
    chat = app.graph("chat").compile(checkpointer=saver)
    context = app.context("chat", values=job.values, saver=saver)
    config: RunnableConfig = {"configurable": {"thread_id": job.thread}}
    state = await chat.aget_state(config)
    given: Any = None if state.values or state.tasks else {"messages": [*TALKED, ("user", job.question)]}
    pipe.send("running")
    while given or state.tasks:
        await chat.ainvoke(Command(resume=APPROVED) if state.interrupts else given, config, context=context)
        given, state = None, await chat.aget_state(config)
    message = state.values["messages"][-1]
    return {**message.additional_kwargs, "text": message.text, "notes": state.values["notes"]}
