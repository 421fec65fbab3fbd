"""The graphs that `langgraph dev` serves (langgraph.json): each method, run from the JSON that Studio sends.

The server manages threads and checkpoints, so the graphs have no checkpointer. Each run opens SLEUTH_HOME for itself:
it is locked only during runs, and every run uses the current documents.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from langgraph_sdk import get_client
from pydantic import ValidationError, create_model

from sleuth.graphs.chat.sending import read_reply
from sleuth.graphs.core.context import Budget, Context, SubrunRequest
from sleuth.graphs.core.method import CHAT, describe_errors
from sleuth.graphs.core.tracing import traced
from sleuth.graphs.registry import METHODS, OTHERS, runnable, without_replies
from sleuth.graphs.runs.execution import RECURSION_LIMIT
from sleuth.graphs.runs.request import check_question
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.studio.client.sleuth import Sleuth, open_sleuth
from sleuth.studio.server.schemas.runs import BudgetForm
from sleuth.tools.errors import RunError, SleuthError, UsageError
from sleuth.tools.langgraph_internals import COPY
from sleuth.tools.storage.archive import Archive, SqlArchive
from sleuth.tools.storage.database import open_engine, sqlite_url


class UserVisibleError(RuntimeError):
    """A SleuthError shown in Studio: the server hides the messages of exceptions that are not built in."""


class DevGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A method's graph that creates its context from the settings and the budget in a request."""

    async def astream(
        self,
        input: Any,  # noqa: ANN401 - as the base has it
        config: RunnableConfig | None = None,
        *,
        context: dict[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - those of the base
    ) -> AsyncIterator[Any]:
        """Run the graph; `context` contains settings of the method and a budget.

        Raises:
            UserVisibleError: the question is missing, the thread has another question, a setting is out of range, or
                the run fails.
        """
        config = RunnableConfig(**{**(config or {}), "recursion_limit": RECURSION_LIMIT})
        try:
            input, config = await self._checked(input, config)
            async with open_sleuth(command="langgraph dev") as sleuth, _archive(sleuth.settings.home) as archive:
                modes = options.get("stream_mode") or []
                has_tokens = not {"messages", "custom"}.isdisjoint([modes] if isinstance(modes, str) else modes)
                run_context = self._context(context or {}, sleuth, archive, lambda: has_tokens)
                config = traced(config, run_context.tracing, texts=run_context.trace_texts)
                run = super().astream(input, config, context=run_context, **options)
                async with aclosing(run) as events:  # type: ignore[type-var]  # astream is an async generator
                    async for event in events:
                        yield event
        except SleuthError as error:
            raise UserVisibleError(str(error)) from error

    async def _checked(self, input: Any, config: RunnableConfig) -> tuple[Any, RunnableConfig]:  # noqa: ANN401 - as the base has it
        """Return the input with a checked question or reply; raise RunError if the thread has a question already."""
        if isinstance(input, Command) and self.checkpointer and (waiting := await self.aget_state(config)).interrupts:
            command = replace(input, resume=read_reply(self.name, waiting, input.resume))
            if config["configurable"].get("checkpoint_id"):  # a copy has no earlier reply, which LangGraph would take
                config = merge_configs(config, await self.aupdate_state(waiting.config, None, as_node=COPY))
            return command, config
        if not isinstance(input, dict):
            return input, config  # None resumes the run
        if self.name == CHAT:  # every message in a thread is a turn
            messages = convert_to_messages(input.get("messages") or [])
            check_question(messages[-1].text if messages else "")
            return input, config
        question = check_question(str(input.get("question") or ""))
        before = await self.aget_state(config) if self.checkpointer else None
        earlier = before and before.values.get("question")
        # The server resumes a run with the same input.
        if before and earlier and (before.metadata or {}).get("run_id", "") != config.get("metadata", {}).get("run_id"):
            raise RunError("This thread has a question already. Start a new thread, or fork this one.")
        return {**_without_empty(input), "question": question}, config

    def _context(
        self, request: dict[str, Any], sleuth: Sleuth, archive: Archive, wants_tokens: Callable[[], bool]
    ) -> Context:
        kind, profile = runnable(self.name), sleuth.settings.profile
        assert self.context_schema
        try:
            form = self.context_schema(**_without_empty(request))
        except ValidationError as error:
            raise UsageError(f"A setting of {self.name} cannot be used: {describe_errors(error)}.") from None
        values = form.model_dump(include=set(kind.settings.model_fields), exclude_unset=True)
        values |= {} if self.checkpointer else without_replies(kind)
        budget = Budget(**form.model_dump(include=set(BudgetForm.model_fields)))
        context = sleuth.context(self.name, values=values, budget=budget)
        assert context.token_stream
        streams = replace(context.token_stream, wants_tokens=wants_tokens)
        context = replace(context, archive=archive, token_stream=streams)
        if isinstance(self.checkpointer, BaseCheckpointSaver):
            saver, announce = self.checkpointer, _announce
        else:  # a run without a thread: its sub-runs have none either
            saver, announce = InMemorySaver(), None
        subruns = CheckpointerSubruns(saver=saver, context=context, profile=profile, announce=announce)
        return replace(context, subruns=subruns)


@asynccontextmanager
async def _archive(home: Path) -> AsyncIterator[Archive]:
    """Open the archive of the server's threads, in a separate file that `sleuth runs prune` does not change."""
    engine = await asyncio.to_thread(open_engine, sqlite_url(home / "studio.sqlite"))
    try:
        yield await asyncio.to_thread(SqlArchive, engine)
    finally:
        await asyncio.to_thread(engine.dispose)


async def _announce(thread: str, subrun: SubrunRequest) -> None:
    """Register the thread of a sub-run with the server, so that Studio shows its steps too."""
    metadata = {"part_of": subrun.parent, "subrun": subrun.number, "parent_checkpoint": subrun.checkpoint}
    client = get_client()
    await client.threads.create(thread_id=thread, graph_id=subrun.method, metadata=metadata, if_exists="do_nothing")


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without None, which Studio sends for empty fields."""
    return {key: value for key, value in values.items() if value is not None}


def _serve(name: str) -> DevGraph:
    kind = runnable(name)
    builder: Any = kind.graph()
    builder.context_schema = create_model("Settings", __base__=(BudgetForm, kind.settings))
    return DevGraph(**vars(builder.compile(name=name)))


globals().update({name.replace("-", "_"): _serve(name) for name in (*METHODS, *OTHERS)})  # the names in langgraph.json
