"""The functions of the package without `await`, for scripts and notebooks: `from sleuth import sync`.

Each runs in an event loop in a thread of its own, so that they also work where a loop is running, as in notebooks.
"""

import ctypes
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, cast

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from sleuth.graphs.core.context import RunOptions
from sleuth.graphs.core.events import Event
from sleuth.studio.client import functions
from sleuth.studio.client.sleuth import Sleuth, open_sleuth
from sleuth.tools.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        with start_blocking_portal() as portal:
            result: T = portal.call(partial(function, *args, **options))
        return result

    return call


def _in_loop(method: Callable[Concatenate[Sleuth, P], T]) -> "Callable[Concatenate[SyncSleuth, P], T]":
    """Return a method that calls one which is not asynchronous, but needs the event loop."""

    @wraps(method)
    def call(self: "SyncSleuth", /, *args: P.args, **options: P.kwargs) -> T:
        return self.portal.call(partial(method, self.opened, *args, **options))

    return call


def _blocking_method(
    method: Callable[Concatenate[Sleuth, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncSleuth, P], T]":
    return _in_loop(cast("Callable[Concatenate[Sleuth, P], T]", method))  # the portal waits for its result


class SyncSleuth:
    """An open `Sleuth` whose methods are called without `await`; created by `open`."""

    def __init__(self, portal: BlockingPortal, opened: Sleuth) -> None:
        """Set the event loop and what is open in it."""
        self._portal, self.opened = portal, opened

    @property
    def portal(self) -> BlockingPortal:
        """The event loop; raise UsageError in a forked process."""
        self.opened.opener.check()
        return self._portal

    ask = _blocking_method(Sleuth.ask)
    resume = _blocking_method(Sleuth.resume)
    search = _blocking_method(Sleuth.search)
    history = _blocking_method(Sleuth.history)
    fork = _blocking_method(Sleuth.fork)
    documents = _blocking_method(Sleuth.documents)
    delete = _blocking_method(Sleuth.delete)

    as_subgraph = _in_loop(Sleuth.as_subgraph)
    as_retriever = _in_loop(Sleuth.as_retriever)
    as_tool = _in_loop(Sleuth.as_tool)

    def stream(self, question: str, *, deltas: bool = False, **options: Unpack[RunOptions]) -> Iterator[Event]:
        """Run a method; yield its steps as they happen, then the `Answer`. Takes the arguments of `Sleuth.stream`."""
        return _events(self.portal, self.opened.stream(question, deltas=deltas, **options))


@contextmanager
def open(
    settings: Settings | None = None,
    *,
    model: BaseChatModel | Mapping[str, BaseChatModel] | None = None,
    embedder: Embeddings | None = None,
    retriever: BaseRetriever | VectorStore | None = None,
) -> Iterator[SyncSleuth]:
    """Open the collection, the store and the model client; takes the arguments of `sleuth.open`."""
    opening = open_sleuth(settings, model=model, embedder=embedder, retriever=retriever)
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        opened = stack.enter_context(portal.wrap_async_context_manager(opening))
        try:
            yield SyncSleuth(portal, opened)
        finally:
            if opened.opener.is_forked():  # closing it, also at the exit, would wait for a thread that the fork lacks
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(stack.pop_all()))


ask = _blocking(functions.ask)
ingest = _blocking(functions.ingest)
search = _blocking(functions.search)


def stream(
    question: str, *, deltas: bool = False, settings: Settings | None = None, **options: Unpack[RunOptions]
) -> Iterator[Event]:
    """Run a method; yield its steps as they happen, then the `Answer`. Takes the arguments of `sleuth.stream`."""
    with start_blocking_portal() as portal:
        yield from _events(portal, functions.stream(question, deltas=deltas, settings=settings, **options))


def _events(portal: BlockingPortal, events: AsyncGenerator[Event]) -> Iterator[Event]:
    """Yield the events of a run, which runs in one task of the event loop; end the run's stream with the iterator."""
    send, receive = anyio.create_memory_object_stream[Event](0)

    async def pump() -> None:
        async with send, aclosing(events):
            async for event in events:
                await send.send(event)

    pumped = portal.start_task_soon(pump)
    try:
        while True:
            try:
                event = portal.call(receive.receive)
            except anyio.EndOfStream:
                break
            yield event
        pumped.result()
    finally:
        receive.close()
        pumped.cancel()
