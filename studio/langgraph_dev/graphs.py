"""What `langgraph dev` serves (langgraph.json): every method's graph, run from what Studio sends as JSON.

The server keeps threads and checkpoints itself, so the graphs have no checkpointer. What a run needs is opened for that
run alone: SLEUTH_HOME is locked only while something runs, and each run sees the documents of the moment.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client
from pydantic import Field, ValidationError, create_model

from sleuth.graphs.core import Budget, Context, MethodSettings, PrivateCompiled, SubrunRequest, describe_errors
from sleuth.graphs.registry import METHODS, configure, runnable
from sleuth.graphs.runs import RECURSION_LIMIT, CheckpointerSubruns, check_question
from sleuth.studio.client import Sleuth, open_sleuth
from sleuth.studio.langgraph_dev.config import variable_of
from sleuth.tools.errors import RunError, SleuthError, UsageError
from sleuth.tools.storage import Archive, SqlArchive, open_engine, sqlite_url


class ShownError(RuntimeError):
    """A SleuthError for people at a browser: the server hides the messages of exceptions that are not Python's own."""


class Limits(MethodSettings):
    """The budget of a run, shown in Studio beside the settings of its method."""

    max_calls: int | None = Field(default=None, ge=1, description="model calls that the run may make")
    max_tokens: int | None = Field(default=None, ge=1, description="tokens that the run may spend")
    max_seconds: float | None = Field(default=None, gt=0, description="seconds that the run may take")


class Served(PrivateCompiled):
    """A method's graph that makes its own context: over HTTP come settings and a budget, or nothing."""

    async def astream(
        self,
        input: Any,  # noqa: ANN401 - as the base has it
        config: RunnableConfig | None = None,
        *,
        context: dict[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - those of the base
    ) -> AsyncIterator[Any]:
        """Runs like the graph itself; `context` holds settings of the method and a budget.

        Raises:
            ShownError: no question, a second one for the thread, a setting out of range, or whatever stops a run.
        """
        config = RunnableConfig(**{**(config or {}), "recursion_limit": RECURSION_LIMIT})
        try:
            given = await self._checked(input, config)
            async with open_sleuth(command="langgraph dev") as sleuth, _archive(sleuth.settings.home) as archive:
                made = self._context(context or {}, sleuth, archive)
                run = super().astream(given, config, context=made, **options)
                async with aclosing(run) as events:  # type: ignore[type-var]  # astream is an async generator
                    async for event in events:
                        yield event
        except SleuthError as error:
            raise ShownError(str(error)) from error

    async def _checked(self, input: Any, config: RunnableConfig) -> Any:  # noqa: ANN401 - as the base has it
        """An input with a usable question, and that on a thread that has none yet: two would be mixed up."""
        if not isinstance(input, dict):
            return input  # nothing, or a command: a run goes on
        question = check_question(str(input.get("question") or ""))
        before = await self.aget_state(config) if self.checkpointer else None
        taken = before and before.values.get("question")
        if before and taken and not _same_run(before.metadata or {}, config.get("metadata", {})):
            raise RunError("This thread has a question already: start a new thread, or fork this one.")
        return {**_given(input), "question": question}

    def _context(self, given: dict[str, Any], sleuth: Sleuth, archive: Archive) -> Context:
        kind, services = runnable(self.name), sleuth.runs.services
        assert self.context_schema
        assert services
        try:
            chosen = self.context_schema(**_given(given))
        except ValidationError as error:
            raise UsageError(f"A setting of {self.name} cannot be used: {describe_errors(error)}.") from None
        values = chosen.model_dump(include=set(kind.settings.model_fields), exclude_unset=True)
        context = services.context(
            archive=archive,
            settings=configure(kind, values, sleuth.settings.profile),
            budget=Budget(**chosen.model_dump(include=set(Limits.model_fields))),
        )
        if isinstance(self.checkpointer, BaseCheckpointSaver):
            kept, announce = self.checkpointer, _announce
        else:  # a run without a thread: its hops have none either
            kept, announce = InMemorySaver(), None
        profile = sleuth.settings.profile
        return replace(
            context, hops=CheckpointerSubruns(saver=kept, context=context, profile=profile, announce=announce)
        )


@asynccontextmanager
async def _archive(home: Path) -> AsyncIterator[Archive]:
    """Texts for the server's threads, in a file of their own: `sleuth runs prune` would take them for unused."""
    engine = await asyncio.to_thread(open_engine, sqlite_url(home / "studio.sqlite"))
    try:
        yield await asyncio.to_thread(SqlArchive, engine)
    finally:
        await asyncio.to_thread(engine.dispose)


async def _announce(thread: str, hop: SubrunRequest) -> None:
    """Puts a hop's thread on the server's list, so that Studio shows its steps too."""
    metadata = {"part_of": hop.parent, "hop": hop.number, "parent_checkpoint": hop.checkpoint}
    client = get_client()
    await client.threads.create(thread_id=thread, graph_id=hop.method, metadata=metadata, if_exists="do_nothing")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what a form was left empty for."""
    return {key: value for key, value in values.items() if value is not None}


def _same_run(before: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the server goes on with a run that it had begun, which it does with the same input."""
    return "run_id" in now and before.get("run_id") == now["run_id"]


class ServedChat(Served):
    """The chat: every message in a thread is a turn of it."""

    async def _checked(self, input: Any, config: RunnableConfig) -> Any:  # noqa: ANN401 - as the base has it
        """What is sent, if the person's message can be replied to; a Command goes on with what was asked back."""
        if isinstance(input, dict):
            messages = convert_to_messages(input.get("messages") or [])
            check_question(messages[-1].text if messages else "")
        return input

    def _context(self, given: dict[str, Any], sleuth: Sleuth, archive: Archive) -> Context:
        """Without a thread nobody can be waited for."""
        waits = {} if self.checkpointer else {"ask_back": False, "approve_plan": False}
        return super()._context({**given, **waits}, sleuth, archive)


def _served(name: str, served: type[Served] = Served) -> Served:
    kind = runnable(name)
    builder: Any = kind.graph()
    builder.context_schema = create_model("Settings", __base__=(Limits, kind.settings))
    return served(**vars(builder.compile(name=name)))


globals().update({variable_of(name): _served(name) for name in METHODS})
chat = _served("chat", ServedChat)
