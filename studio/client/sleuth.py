"""The Python API: an open `Sleuth` for many questions, or the functions of `sleuth` for a single one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import NAMESPACE_OID, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph

from sleuth.agents.model import Model
from sleuth.graphs.core import Answer, Budget, Context, Event, PrivateGraph, fitted_thresholds, in_fresh_context
from sleuth.graphs.persistence import open_store
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs import CheckpointerSubruns, RunService, Services
from sleuth.studio.model_server import PACKAGED
from sleuth.tools.collection import Collection
from sleuth.tools.errors import RunError
from sleuth.tools.evidence_checker import find_checker
from sleuth.tools.settings import Settings
from sleuth.tools.sources.knowledge_graph import open_graph
from sleuth.tools.sources.question_attributes.svm import find_svm
from sleuth.tools.sources.web_pages import Page, read_pages
from sleuth.tools.storage import SqlTriples, hold

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from sleuth.agents.llm.client import LLMClient

DEFAULT_METHOD = "par-rag"

ServiceFactory = Callable[..., Services]
"""Creates services from a `model` and the `triples` that its runs share."""


class NamedModel(Model, Protocol):
    """A model client that returns the name of each role's model."""

    def name_of(self, role: str) -> str:
        """Return the name of the model of a role."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sleuth:
    """An open collection, store of runs and model client; created by `open_sleuth`."""

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
        """Run a method; yield its steps as they happen, then the `Answer`.

        Args:
            question: the question.
            method: a name from `sleuth.METHODS`.
            values: settings of the method, such as `{"coarse_k": 5}`.
            budget: what the run may spend.
            thread: the thread id, generated if omitted.
            pages: web pages to search instead of the collection; their text is stored with the run.
            with_collection: search the collection as well as the pages.
            deltas: also yield text while the model writes it, as `Delta`, and a `Reset` if a call is repeated. The run
                itself is the same.

        Raises:
            SleuthError: see `sleuth.tools.errors`; a run that was started can be resumed.
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
        async with aclosing(self.runs.run(id, listening=(lambda: True) if deltas else None)) as events:
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
        """Run a method and return the answer; takes the arguments of `stream`. Works inside nodes of other graphs."""
        events = self.stream(
            question,
            method=method,
            values=values,
            budget=budget,
            thread=thread,
            pages=pages,
            with_collection=with_collection,
        )
        return await in_fresh_context(last_answer(events))

    async def resume(self, thread: str, *, budget: Budget | None = None) -> Answer:
        """Resume a run from its last checkpoint; return the stored answer if it is finished."""
        return await in_fresh_context(last_answer(self.runs.run(thread, budget=budget)))

    def tool(self, method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of ask
        """Return a method as a tool of another agent; see `sleuth.studio.client.langchain_tool`."""
        from sleuth.studio.client.langchain_tool import tool_of

        return tool_of(partial(self.ask, method=method, **options), method)

    async def once(self, key: str, question: str, **options: Any) -> Answer:  # noqa: ANN401 - those of ask
        """Ask a question at most once per key: resume the earlier run of this key, or return its answer.

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
        """Return the context with which another application runs `sleuth.graph(name)`.

        Args:
            name: a method, or chat.
            values: settings of the method.
            budget: what the run may spend.
            saver: checkpointer of the application, for the threads of methods that auto and chat run.
        """
        assert self.runs.services
        settings, profile = configure(runnable(name), values or {}, self.settings.profile), self.settings.profile
        archive = self.runs.store.archive
        context = self.runs.services.context(archive=archive, settings=settings, budget=budget or Budget())
        if saver is None:
            return context
        return replace(context, hops=CheckpointerSubruns(saver=saver, context=context, profile=profile))


async def last_answer(events: AsyncGenerator[Event]) -> Answer:
    """Return the answer of a run, ignoring its steps."""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Answer):
                return event
    raise RunError("The run ended without an answer.")


@asynccontextmanager
async def open_sleuth(settings: Settings | None = None, *, command: str = "sleuth") -> AsyncIterator[Sleuth]:
    """Open the collection, the store and the model client.

    Args:
        settings: those of the environment by default.
        command: the name of this process in the home lock.

    Raises:
        ModelUnavailable: no model server answers.
        StoreBusy: another process ingests or deletes documents; the message names it.
    """
    if settings is None:
        settings = await asyncio.to_thread(Settings)
    async with AsyncExitStack() as stack:
        gateway = await asyncio.to_thread(gateway_class)
        model = await stack.enter_async_context(gateway.open(settings))
        await stack.enter_async_context(hold(settings.home, "shared", command=command, wait=settings.wait))
        library = await stack.enter_async_context(await Collection.open(settings))
        store = await stack.enter_async_context(open_store(settings))
        services = await stack.enter_async_context(open_services(settings, model, library))
        yield Sleuth(runs=RunService(store, services), library=library, settings=settings)


@asynccontextmanager
async def build_services(
    settings: Settings, library: Collection, *, model_of: Callable[[str], str], triples: SqlTriples | None = None
) -> AsyncIterator[ServiceFactory]:
    """Open everything that does not depend on the model, and yield a factory of services.

    Args:
        settings: the settings of the home.
        library: the open collection.
        model_of: returns the name of the model of a role.
        triples: triples of the collection, used as knowledge graph if the settings name none.

    Raises:
        StoreError: a trained classifier, a fitted threshold or the knowledge graph's file cannot be read.
    """
    async with open_graph(settings.knowledge_graph, triples) as graph:
        yield partial(
            Services,
            retriever=library,
            embedder=library.embedder,
            graph=graph,
            tracing=settings.tracing,
            checker=await asyncio.to_thread(find_checker, settings.checker),
            predictor=await asyncio.to_thread(find_svm, settings.home, library.embedder),
            thresholds=await asyncio.to_thread(fitted_thresholds, [settings.home, PACKAGED], model_of),
        )


@asynccontextmanager
async def open_services(settings: Settings, model: NamedModel, library: Collection) -> AsyncIterator[Services]:
    """Open the services of runs with an open model client and library."""
    triples = library.triples(model=model.name_of("extractor"))
    async with build_services(settings, library, model_of=model.name_of, triples=triples) as make:
        yield make(model=model, triples=triples)


def gateway_class() -> "type[LLMClient]":
    """Import and return the model client; commands that call no model start without importing openai."""
    from sleuth.agents.llm.client import LLMClient

    return LLMClient


async def ask(question: str, **options: Any) -> Answer:  # noqa: ANN401 - those of Sleuth.ask
    """Answer one question with the settings of the environment; takes the arguments of `Sleuth.ask`."""
    async with open_sleuth() as sleuth:
        return await sleuth.ask(question, **options)


async def stream(question: str, **options: Any) -> AsyncGenerator[Event]:  # noqa: ANN401 - those of Sleuth.stream
    """Answer one question and yield its steps; takes the arguments of `Sleuth.stream`."""
    async with open_sleuth() as sleuth, aclosing(sleuth.stream(question, **options)) as events:
        async for event in events:
            yield event


def tool(method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of Sleuth.ask
    """Return a method as a tool of another agent; each call opens the home, unlike `Sleuth.tool`."""
    from sleuth.studio.client.langchain_tool import tool_of

    return tool_of(partial(ask, method=method, **options), method)


def graph(name: str) -> StateGraph[Any, Context, Any, Any]:
    """Return the uncompiled state machine of a method or of `chat`, for other applications.

    Run it with a `sleuth.Context`; auto and chat, which run other methods, need `hops` in it.
    """
    return PrivateGraph(runnable(name).graph())
