"""The Python interface: one open `Sleuth` for many questions, or the functions in `sleuth` for one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import NAMESPACE_OID, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph

from sleuth.agents.model import Model
from sleuth.graphs.core import Answer, Budget, Context, Event, PrivateGraph, in_fresh_context
from sleuth.graphs.persistence import open_store
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs import CheckpointerSubruns, RunService, Services
from sleuth.studio.client.services import furnished
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError
from sleuth.tools.settings import Settings
from sleuth.tools.sources.web_pages import Page, read_pages
from sleuth.tools.storage import hold

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from sleuth.agents.llm.client import LLMClient

DEFAULT_METHOD = "par-rag"


class Named(Model, Protocol):
    """A model that tells by which name it answers for a role."""

    def name_of(self, role: str) -> str:
        """The name of the model that answers for a role."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sleuth:
    """Asks and resumes over one collection, one store of runs and one model server; made by `open_sleuth`."""

    runs: RunService
    library: Collection
    settings: Settings

    async def stream(
        self,
        question: str,
        *,
        method: str = DEFAULT_METHOD,
        values: dict[str, Any] | None = None,
        budget: Budget | None = None,
        thread: str | None = None,
        pages: Sequence[Page] = (),
        with_collection: bool = False,
        deltas: bool = False,
    ) -> AsyncGenerator[Event]:
        """A question's steps as they happen, then its `Answer`.

        Args:
            question: what to find out.
            method: a name from `sleuth.METHODS`.
            values: settings of the method, such as `{"coarse_k": 5}`.
            budget: what the run may spend.
            thread: a name for the run; one is made up where none is given.
            pages: web pages that are searched instead of the collection; what was read of them is kept with the run.
            with_collection: searches the collection beside the pages.
            deltas: tells also what the model writes while it writes it, as `Delta`, and takes it back by a `Reset`
                where a call is repeated. What the run does is the same.

        Raises:
            SleuthError: see `sleuth.tools.errors`; a run that had begun can be resumed.
        """
        if with_collection or not pages:
            await self.library.require_documents()
        id = await self.runs.start(
            question,
            method,
            values=values,
            profile=self.settings.profile,
            budget=budget,
            thread=thread,
            pages=await read_pages(pages),
            beside=with_collection,
        )
        async with aclosing(self.runs.run(id, listening=_always if deltas else None)) as events:
            async for event in events:
                yield event

    async def ask(
        self,
        question: str,
        *,
        method: str = DEFAULT_METHOD,
        values: dict[str, Any] | None = None,
        budget: Budget | None = None,
        thread: str | None = None,
        pages: Sequence[Page] = (),
        with_collection: bool = False,
    ) -> Answer:
        """Like `stream`, but only the answer; may be called in a node of another graph."""
        events = self.stream(
            question,
            method=method,
            values=values,
            budget=budget,
            thread=thread,
            pages=pages,
            with_collection=with_collection,
        )
        return await in_fresh_context(last(events))

    async def resume(self, thread: str, *, budget: Budget | None = None) -> Answer:
        """Goes on with a run from its last checkpoint; the answer at once where it is finished."""
        return await in_fresh_context(last(self.runs.run(thread, budget=budget)))

    def tool(self, method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of ask
        """A method as a tool of another agent; see `sleuth.studio.client.langchain_tool`."""
        from sleuth.studio.client.langchain_tool import tool_of

        return tool_of(partial(self.ask, method=method, **options), method)

    async def once(self, key: str, question: str, **options: Any) -> Answer:  # noqa: ANN401 - those of ask
        """`ask`, but at most once for a key: where it was asked before, that run goes on, or its answer is had at once.

        For nodes of other graphs, which LangGraph runs again after an interruption.
        """
        thread = uuid5(NAMESPACE_OID, key).hex[:12]
        if await self.runs.store.threads.exists(thread):
            return await self.resume(thread)
        return await self.ask(question, thread=thread, **options)

    def context(
        self,
        name: str,
        *,
        values: dict[str, Any] | None = None,
        budget: Budget | None = None,
        saver: BaseCheckpointSaver[Any] | None = None,
    ) -> Context:
        """What `sleuth.graph(name)` is run with in another application.

        Args:
            name: a method, or chat.
            values: its settings.
            budget: what the run may spend.
            saver: where the threads of methods run by auto and chat are kept; the application's own checkpointer.
        """
        assert self.runs.services
        settings, profile = configure(runnable(name), values or {}, self.settings.profile), self.settings.profile
        archive = self.runs.store.archive
        context = self.runs.services.context(archive=archive, settings=settings, budget=budget or Budget())
        return (
            context
            if saver is None
            else replace(context, hops=CheckpointerSubruns(saver=saver, context=context, profile=profile))
        )


def _always() -> bool:
    return True


async def last(events: AsyncGenerator[Event]) -> Answer:
    """The answer at the end of a run."""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Answer):
                return event
    raise RunError("The run ended without an answer.")


@asynccontextmanager
async def open_sleuth(settings: Settings | None = None, *, command: str = "sleuth") -> AsyncIterator[Sleuth]:
    """Everything that asking takes, open as long as the block lasts.

    Raises:
        ModelUnavailable: no model server answers.
        StoreBusy: documents are being read in or deleted; says by whom.
    """
    if settings is None:
        settings = await asyncio.to_thread(Settings)
    async with AsyncExitStack() as stack:
        gateway = await asyncio.to_thread(gateway_class)
        model = await stack.enter_async_context(gateway.open(settings))
        await stack.enter_async_context(hold(settings.home, "shared", command=command))
        library = await stack.enter_async_context(await Collection.open(settings))
        store = await stack.enter_async_context(open_store(settings))
        services = await stack.enter_async_context(open_services(settings, model, library))
        yield Sleuth(runs=RunService(store, services), library=library, settings=settings)


@asynccontextmanager
async def open_services(settings: Settings, model: Named, library: Collection) -> AsyncIterator[Services]:
    """What runs are made with, over a model and a library that are open."""
    triples = library.triples(model=model.name_of("extractor"))
    async with furnished(settings, library, model_of=model.name_of, triples=triples) as make:
        yield make(model=model, triples=triples)


def gateway_class() -> "type[LLMClient]":
    """Imported when it is needed, which takes a while: commands that ask nothing start without openai."""
    from sleuth.agents.llm.client import LLMClient

    return LLMClient


async def ask(question: str, **options: Any) -> Answer:  # noqa: ANN401 - those of Sleuth.ask
    """Answers one question with the settings of the environment; takes the arguments of `Sleuth.ask`."""
    async with open_sleuth() as sleuth:
        return await sleuth.ask(question, **options)


async def stream(question: str, **options: Any) -> AsyncGenerator[Event]:  # noqa: ANN401 - those of Sleuth.stream
    """Like `ask`, with the steps on the way; takes the arguments of `Sleuth.stream`."""
    async with open_sleuth() as sleuth, aclosing(sleuth.stream(question, **options)) as events:
        async for event in events:
            yield event


def tool(method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of Sleuth.ask
    """A method as a tool of another agent; each call opens everything anew, which `Sleuth.tool` does not."""
    from sleuth.studio.client.langchain_tool import tool_of

    return tool_of(partial(ask, method=method, **options), method)


def graph(name: str) -> StateGraph[Any, Context, Any, Any]:
    """The state machine of a method, or of the `chat`, not compiled, for other people's applications.

    Run it with a `sleuth.Context`; what runs other methods (auto, chat) needs `hops` in it.
    """
    return PrivateGraph(runnable(name).graph())
