"""Durable runs: start, resume and read the runs of a store.

A run is a thread of checkpoints. After an interruption it resumes from its last checkpoint, and no completed model
call is sent again. In a sub-run another method answers a question in a thread of its own, which is named after the
place in the outer run from which it is started. After a kill the same place resumes the same thread. A fork of the
outer run is another place and gets its own threads.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from langchain_core.callbacks.base import Callbacks
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget, Context, SubrunRequest, SubrunResult
from sleuth.graphs.core.events import Event, parse_event
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.core.tracing import add_callbacks
from sleuth.graphs.persistence.thread import Origin, RunResult, Thread, ThreadState
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.execution import (
    begin_subrun,
    end_subrun,
    now,
    resume_with_budget,
    seconds_at,
    stream_steps,
    subrun_thread,
    with_clock,
)
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.starting import RunStarter
from sleuth.graphs.runs.turns import input_for, state_before, unanswered_question
from sleuth.tools.errors import RunError, SleuthError, needs_part
from sleuth.tools.search.retriever import FilteredRetriever
from sleuth.tools.storage.database import is_database_error


class RunService(RunStarter):
    """Service that starts, resumes and reads the runs of one store."""

    async def run(
        self,
        id: str,
        *,
        budget: Budget | None = None,
        wants_tokens: Callable[[], bool] | None = None,
        callbacks: Callbacks = None,
        control: RunControl | None = None,
        is_locked: bool = False,
    ) -> AsyncGenerator[Event]:
        """Run a thread from its latest checkpoint to its end; yield its steps as they happen, then its answer.

        Args:
            id: the thread.
            budget: replaces the run's budget; a run that had used up its own resumes.
            wants_tokens: is called before each model call; True if the tokens of its reply are wanted.
            callbacks: handlers of LangChain, in addition to those of the run around this one.
            control: its `request_drain()` interrupts the run when the steps in progress have ended.
            is_locked: the caller holds the lock of the thread.

        Raises:
            ThreadBusy: another process is running it.
            GraphDrained: `control` interrupted it; it can be resumed.
            SleuthError: the error that stopped the run; it can be resumed.
        """
        async with nullcontext() if is_locked else self.store.locks.hold(id):
            thread = await self.store.threads.get(id)
            if budget is not None:
                thread = replace(thread, options=thread.options.model_copy(update={"budget": budget}))
            thread = await self._with_unanswered_question(thread)
            state: ThreadState = "interrupted"
            problem, worked, result, question = "", None, None, None
            try:
                await self.store.threads.set_state(id, "running", at=now(), options=thread.options if budget else None)
                if budget is not None and not thread.part_of:  # a sub-run is resumed as its outer run left it
                    worked = await resume_with_budget(self.graph(thread), self.config(thread))
                async with aclosing(self._events(thread, wants_tokens, callbacks, control, worked)) as events:
                    async for event in events:
                        if isinstance(event, Answer) and event.is_small_talk and thread.options.turn:
                            state, problem, question = state_before(thread, thread.options.turn)
                        elif isinstance(event, Answer):
                            state, result = "waiting" if event.asks else "done", RunResult.of(event)
                        yield event
            except GraphDrained:
                raise
            except Exception as error:
                state, problem = "failed", _describe(error, id)
                raise
            finally:
                await self.store.threads.set_state(
                    id, state, at=now(), problem=problem, result=result, question=question
                )

    async def _with_unanswered_question(self, thread: Thread) -> Thread:
        """Return a chat with the message to send again, if only small talk followed a turn without an answer."""
        text = unanswered_question(thread, await self.state(thread)) if thread.method == CHAT else ""
        if not text:
            return thread
        parameters = thread.options.parameters()
        await self.continue_thread(thread, RunRequest(question=text, method=CHAT, **parameters), is_locked=True)
        return await self.store.threads.get(thread.id)

    async def mark_stopped(self, id: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        await self.store.threads.mark_stopped(id, at=now())

    async def _events(
        self,
        thread: Thread,
        wants_tokens: Callable[[], bool] | None,
        callbacks: Callbacks,
        control: RunControl | None,
        worked: float | None,
    ) -> AsyncGenerator[Event]:
        before = await self.state(thread)
        inputs, turn = input_for(thread, before), thread.options.turn
        branch = turn.start if turn and turn.start != turn.at else None
        # Not `next`: it lacks a node whose result is committed while the checkpoint after it is not.
        if inputs is not None or (before.tasks and not before.interrupts):
            resumed_step = None if thread.state == "queued" else int((before.metadata or {}).get("step", 0)) + 1
            streams = None
            if wants_tokens:
                answers = runnable(thread.method).answers
                streams = TokenStream(answers=answers, wants_tokens=wants_tokens, resumed_step=resumed_step)
            context = await self._context(thread, streams)
            worked = 0.0 if isinstance(inputs, dict) else seconds_at(before) if worked is None else worked
            start = self.config(thread, None if inputs is None else branch)
            timed = add_callbacks(with_clock(start, worked), callbacks)
            async with aclosing(stream_steps(self.graph(thread), inputs, timed, context, control=control)) as events:
                async for event in events:
                    about = {"thread": thread.id, "method": thread.method, "part_of": thread.part_of}
                    of_turn = {"turn": turn.id} if turn and event["kind"] == "step" else {}
                    yield parse_event({**about, **event, **of_turn})
        yield await self._answer(thread)

    async def _context(self, thread: Thread, streams: TokenStream | None) -> Context:
        if self.services is None:
            raise RunError("This store was opened for reading: open it with services to run something.")
        pages: tuple[Any, ...] = ()
        retriever = self.services.retriever
        if where := thread.options.where:
            retriever = FilteredRetriever(retriever, where)
        if (stored := thread.options.pages).texts:
            with needs_part("web-pages", "A question with web pages"):
                from sleuth.tools.web_pages.page import PageText
                from sleuth.tools.web_pages.retriever import FusedRetriever, PageRetriever

            pages = tuple(map(PageText.from_json, await self.store.archive.load(stored.texts)))
            over = PageRetriever.over(pages, self.services.embedder)
            retriever = FusedRetriever(over, retriever) if stored.with_collection else over
        return self.services.context(
            retriever=retriever,
            pages=pages,
            archive=self.store.archive,
            settings=configure(runnable(thread.method), thread.options.values, thread.options.profile),
            budget=thread.options.budget,
            subruns=StoreSubruns(runs=self, outer=thread),
            token_stream=streams,
        )


def _describe(error: Exception, id: str) -> str:
    """Return why a run failed."""
    if isinstance(error, SleuthError):
        return str(error)
    what = "The database failed" if is_database_error(error) else "A step failed, which is a bug"
    return f"{what}: {type(error).__name__}: {error}. `sleuth resume {id}` tries again."


@dataclass(frozen=True, kw_only=True)
class StoreSubruns:
    """Sub-runs as runs of the same store: listed, locked, resumed and shown like any other."""

    runs: RunService
    outer: Thread

    async def __call__(self, request: SubrunRequest) -> SubrunResult:
        """Start or resume a sub-run with the budget of the request."""
        id = subrun_thread(request)
        if not await self.runs.store.threads.exists(id):
            origin = Origin(parent=request.parent, checkpoint=request.checkpoint, subrun=request.number)
            await self.runs.start_like(
                self.outer, request.question, request.method, values=request.values, thread=id, origin=origin
            )
        settings = configure(runnable(request.method), request.values, self.outer.options.profile)
        async with self.runs.store.locks.hold(id):
            thread = await self.runs.store.threads.get(id)  # raises if it was removed meanwhile
            graph, config = self.runs.graph(thread), self.runs.config(thread)
            await begin_subrun(graph, config, request, settings)
        async with aclosing(
            self.runs.run(id, budget=request.budget, wants_tokens=request.wants_tokens, control=request.control)
        ) as events:
            async for event in events:
                if not isinstance(event, Answer):
                    request.on_step(asdict(event))
        return end_subrun(id, (await graph.aget_state(config)).values)
