"""An open `Sleuth` for many questions; `sleuth.studio.client.functions` opens one for a single call."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from uuid import NAMESPACE_OID, uuid5

from langchain_core.callbacks.base import Callbacks
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import DEFAULT_METHOD, Budget, Context, RunOptions
from sleuth.graphs.core.events import Event
from sleuth.graphs.core.method import CHAT, MODELLESS_METHOD
from sleuth.graphs.core.subrun import in_fresh_context
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.core.tracing import check_callbacks
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.studio.client.opening import Opener
from sleuth.studio.client.services import MissingModel, open_client_or_missing, open_services
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelTimeout, ModelUnavailable, RunError, SleuthError, needs_part
from sleuth.tools.home import open_home
from sleuth.tools.search import Mode, Query, Retriever, find_mode
from sleuth.tools.search.langchain import LangChainRetriever
from sleuth.tools.search.vectors.embedder import LangChainEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.types import Hit

if TYPE_CHECKING:
    from langchain_core.documents import BaseDocumentCompressor
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

    from sleuth.graphs.runs.history import CheckpointView
    from sleuth.tools.web_pages.page import Page


@dataclass(frozen=True, kw_only=True)
class Sleuth:
    """An open collection, store of runs and model client; created by `open_sleuth`, and used only in the same process.

    `model` is the name of the default model; without a usable model server it is empty, and `model_problem` has the
    reason.
    """

    runs: RunService
    collection: Collection
    settings: Settings
    model: str = ""
    opener: Opener = field(default_factory=Opener)
    model_problem: SleuthError | None = None

    @property
    def default_method(self) -> str:
        """The method of questions that name none: `reader` if no model server answers, but not if one refuses."""
        is_away = isinstance(self.model_problem, ModelUnavailable | ModelTimeout)
        return MODELLESS_METHOD if is_away else DEFAULT_METHOD

    @property
    def searched(self) -> Retriever:
        """The collection, or the retriever that runs search instead."""
        self.opener.check()
        return self.runs.services.retriever if self.runs.services else self.collection

    async def stream(
        self, question: str, *, deltas: bool = False, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[Event]:
        """Run a method; yield its steps as they happen, then the `Answer`.

        Args:
            question: the question.
            deltas: also yield text while the model writes it, as `Delta`, and a `Reset` if a call is repeated. The run
                itself is the same.
            options: see `RunOptions`.

        Raises:
            SleuthError: see `sleuth.tools.errors`; a run that was started can be resumed.
        """
        self.opener.check()
        callbacks, pages = options.pop("callbacks", None), options.pop("pages", ())
        request = RunRequest(question=question, **options)
        request = await with_pages(request, pages)
        async with aclosing(self.run(request, deltas=deltas, callbacks=callbacks)) as events:
            async for event in events:
                yield event

    async def run(
        self, request: RunRequest, *, deltas: bool = False, callbacks: Callbacks = None
    ) -> AsyncGenerator[Event]:
        """Start the run of a request; yield what `stream` yields."""
        check_callbacks(callbacks)
        is_named, start = request.method is not None, self.runs.start
        request = request.resolved(default_method=self.default_method, profile=self.settings.profile)
        if not is_named or request.thread or request.kind.name == CHAT:
            from sleuth.graphs.chat.sending import as_chat, send

            request, start = request if is_named else as_chat(request), partial(send, self.runs)
        if self.model_problem and request.kind.needs_model and request.kind.name != CHAT:  # a chat stores the message
            raise self.model_problem
        if self.searched is self.collection and (request.with_collection or not request.pages):
            await self.collection.require_documents(request.where)
        id = await start(request)
        wants_tokens = (lambda: True) if deltas else None
        async with aclosing(self.runs.run(id, wants_tokens=wants_tokens, callbacks=callbacks)) as events:
            async for event in events:
                yield event

    async def ask(self, question: str, **options: Unpack[RunOptions]) -> Answer:
        """Run a method and return the answer; takes the arguments of `stream`. Works inside nodes of other graphs."""
        self.opener.check()
        return await in_fresh_context(last_answer(self.stream(question, **options)))

    async def resume(
        self,
        thread: str,
        *,
        budget: Budget | None = None,
        callbacks: Callbacks = None,
        update: bool = False,
        reply: Any = None,  # noqa: ANN401 - any JSON
    ) -> Answer:
        """Resume a run from its last checkpoint; return the stored answer if it is finished.

        Args:
            thread: the run.
            budget: a new budget; by default that of the run.
            callbacks: those of `ask`.
            update: a finished survey asks the documents that are new or have changed since.
            reply: what the run waits for (`Answer.asks`): a text, or decisions in the form of the request.

        Raises:
            UnknownName: there is no such run.
            UsageError: `update` of a run that is no survey, or `reply` to one that does not wait.
            ThreadBusy: another process runs it.
        """
        self.opener.check()
        if update:
            await self.runs.queue_survey_update(thread)
        if reply is not None:
            from sleuth.graphs.chat.sending import reply_to

            async with self.runs.hold(thread) as held:
                await reply_to(held, reply)
        events = self.runs.run(thread, budget=budget, callbacks=check_callbacks(callbacks))
        return await in_fresh_context(last_answer(events))

    async def search(self, query: str, *, k: int = 5, mode: Mode = "hybrid", where: str = "") -> list[Hit]:
        """Return the best `k` passages, best first; takes the arguments of `sleuth.search`."""
        return await self.searched.search(Query(text=query, k=k, mode=find_mode(mode), where=where))

    async def history(self, thread: str) -> "list[CheckpointView]":
        """Return all checkpoints of a run, the newest first; raise UnknownName for an unknown run."""
        from sleuth.graphs.runs.history import list_checkpoints

        self.opener.check()
        return await list_checkpoints(self.runs, thread)

    async def fork(
        self,
        thread: str,
        *,
        at: str,
        changes: dict[str, Any] | None = None,
        into: str | None = None,
        name: str | None = None,
    ) -> dict[str, str]:
        """Branch a run from one of its checkpoints; `resume` runs the branch.

        Args:
            thread: the run.
            at: the checkpoint: its id or beginning, step, or node.
            changes: new values of state fields; keyed fields are merged by key, None removes a key.
            into: another method, which continues with the findings so far in a thread of its own.
            name: gives a branch of the same method a thread of its own, too.

        Returns:
            The `thread` and the `checkpoint` of the branch.

        Raises:
            UnknownName: no such run, checkpoint, field or method.
            UsageError: a field has another type.
        """
        from sleuth.graphs.runs.history import fork_run

        self.opener.check()
        return await fork_run(self.runs, thread, at=at, changes=changes, into=into, name=name)

    async def documents(self, *, limit: int = 100, after: str = "", find: str = "", where: str = "") -> list[Listed]:
        """Return documents with `find` in their title that match a filter, ordered by id, after the id `after`."""
        self.opener.check()
        return await self.collection.documents(limit=limit, after=after, find=find, where=where)

    async def delete(self, *ids: str) -> int:
        """Delete documents from the catalogue and all indexes; return their number.

        Raises:
            UnknownName: a document does not exist; none is deleted.
            StoreBusy: another process changes the documents.
        """
        from sleuth.tools.ingestion.ingestion import Ingestion

        self.opener.check()
        lock = self.runs.store.home.lock.hold("exclusive", wait=self.settings.wait)
        async with lock, Ingestion(self.collection) as ingestion:
            return await ingestion.delete(ids)

    def as_tool(self, /, method: str = DEFAULT_METHOD, **options: Any) -> "BaseTool":  # noqa: ANN401 - those of ask
        """Return a method as a LangChain tool of another agent; `options` are those of `ask`."""
        from sleuth.studio.client.langchain_parts import tool_of

        return tool_of(partial(self.ask, method=method, **options), method, opener=self.opener)

    def as_subgraph(
        self,
        method: str = DEFAULT_METHOD,
        *,
        values: dict[str, Any] | None = None,
        budget: Budget | None = None,
        question: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> "Runnable[Mapping[str, Any], dict[str, Any]]":
        """Return a node for another graph that runs a method as a subgraph.

        The other graph's checkpointer stores every step, its streams contain them with `subgraphs=True`, and interrupts
        of the chat stop it. The node reads the last human message of a state with `messages` and adds the answer with
        footnotes; `additional_kwargs["sleuth"]` of that message is the whole verdict. Works with `ainvoke`, and with
        `invoke` from another thread than that of this event loop.

        Args:
            method: a name from `sleuth.METHODS`, or chat, which reads the whole conversation.
            values: settings of the method.
            budget: what each run may spend.
            question: returns the question from a state without messages.
        """
        from sleuth.studio.client.subgraphs import subgraph_of

        return subgraph_of(self.context, method, values=values, budget=budget, question=question, opener=self.opener)

    def as_retriever(self, *, k: int = 5, mode: Mode = "hybrid", where: str = "") -> "BaseRetriever":
        """Return the search as a LangChain retriever; scores and paths are in the metadata of its documents."""
        from sleuth.studio.client.langchain_parts import SleuthRetriever

        return SleuthRetriever(search=self.search, opener=self.opener, k=k, mode=mode, where=where)

    async def once(self, key: str, question: str, **options: Unpack[RunOptions]) -> Answer:
        """Ask a question at most once per key: resume the earlier run of this key, or return its answer.

        For nodes of other graphs, which LangGraph runs again after an interruption.
        """
        self.opener.check()
        thread = uuid5(NAMESPACE_OID, key).hex[:12]
        if await self.runs.store.threads.exists(thread):
            return await self.resume(thread, callbacks=options.get("callbacks"))
        options["thread"] = thread
        return await self.ask(question, **options)

    @staticmethod
    def graph(name: str) -> StateGraph[Any, Context, Any, Any]:
        """Return the uncompiled state machine of a method or of `chat`, for other applications.

        Run it with a `context`; auto and chat, which run other methods, need its `saver`.
        """
        return runnable(name).graph()

    def context(
        self,
        name: str,
        *,
        values: dict[str, Any] | None = None,
        budget: Budget | None = None,
        saver: BaseCheckpointSaver[Any] | None = None,
    ) -> Context:
        """Return the context with which another application runs a `graph`.

        Args:
            name: a method, or chat.
            values: settings of the method.
            budget: what the run may spend.
            saver: checkpointer of the application, for the threads of methods that auto and chat run.
        """
        self.opener.check()
        services, profile, archive = self.runs.services, self.settings.profile, self.runs.store.archive
        assert services
        kind, budget = runnable(name), budget or Budget()
        settings, streams = configure(kind, values or {}, profile), TokenStream(answers=kind.answers)
        context = services.context(archive=archive, settings=settings, budget=budget, token_stream=streams)
        if saver is None:
            return context
        return replace(context, subruns=CheckpointerSubruns(saver=saver, context=context, profile=profile))


async def with_pages(request: RunRequest, pages: "Sequence[Page | str]") -> RunRequest:
    """Return the request with web pages; a text is a URL or the path of a file."""
    if not pages:
        return request
    with needs_part("web-pages", "A question with web pages"):
        from sleuth.tools.web_pages.fetch import get_pages
        from sleuth.tools.web_pages.reading import read_pages

    return request.model_copy(update={"pages": await read_pages(await get_pages(pages))})


async def last_answer(events: AsyncGenerator[Event]) -> Answer:
    """Return the answer of a run, ignoring its steps."""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Answer):
                return event
    raise RunError("The run ended without an answer.")


@asynccontextmanager
async def open_sleuth(
    settings: Settings | None = None,
    *,
    model: BaseChatModel | Mapping[str, BaseChatModel] | None = None,
    embedder: Embeddings | None = None,
    retriever: BaseRetriever | VectorStore | None = None,
    reranker: "BaseDocumentCompressor | None" = None,
    command: str = "sleuth",
) -> AsyncIterator[Sleuth]:
    """Open the collection, the store and the model client.

    Args:
        settings: those of the environment by default.
        model: a LangChain chat model instead of a model server, or one for each role and "default".
        embedder: LangChain embeddings instead of SLEUTH_EMBEDDER; `ingest` needs the same.
        retriever: a LangChain retriever or vector store that is searched instead of the collection.
        reranker: a LangChain document compressor that sorts what a search of the collection finds, instead of
            SLEUTH_RERANKER.
        command: the name of this process in the home lock.

    Raises:
        MissingExtra: SLEUTH_TRACING is `otel`, and the extra `otel` is not installed.
        EmbedderChanged: the collection was built with another embedder.
        StoreBusy: another process rebuilds or restores the home; the message names it.
        UnknownName: `model` has a role that does not exist.
    """
    if settings is None:
        settings = await asyncio.to_thread(Settings)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client_or_missing(settings, model))
        home = await stack.enter_async_context(open_home(settings, "search", command=command))
        own = LangChainEmbedder(embedder) if embedder else None
        collection = await stack.enter_async_context(await Collection.open(settings, home=home, embedder=own))
        if reranker:
            from sleuth.tools.search.reranker import CompressorReranker

            collection.reranker = CompressorReranker(reranker)
        store = await stack.enter_async_context(open_store(settings, home))
        services = await stack.enter_async_context(open_services(settings, client, collection))
        if retriever:
            services = replace(services, retriever=LangChainRetriever(retriever))
        yield Sleuth(
            runs=RunService(store, services),
            collection=collection,
            settings=settings,
            model=client.name_of("default"),
            model_problem=client.reason if isinstance(client, MissingModel) else None,
        )
