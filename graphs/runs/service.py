"""Durable runs of one store: start, resume and read them.

A run is a thread of checkpoints. After an interruption it resumes from its last checkpoint, and no completed model
call is sent again. `sleuth.graphs.chat.sending` stores the messages of a chat, and the replies to a run that waits.
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from sleuth.graphs.core.answer import Answer, Verdict, public_notes, subruns_in, total_cost
from sleuth.graphs.core.context import Budget, Context, Services
from sleuth.graphs.core.events import Event, parse_event
from sleuth.graphs.core.method import CHAT, SURVEY
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.core.tracing import add_callbacks
from sleuth.graphs.evidence.check import require_checker
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.thread import Origin, RunResult, StoredOptions, StoredPages, Thread, ThreadState, Turn
from sleuth.graphs.persistence.threads import already_used
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.execution import (
    RECURSION_LIMIT,
    Compiled,
    accept_state,
    checkpoint_id_of,
    compile_method,
    now,
    resume_with_budget,
    seconds_at,
    stream_steps,
    unknown_checkpoint,
    with_clock,
)
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.subruns import StoreSubruns
from sleuth.graphs.runs.turns import input_of_turn, is_unfinished, state_before, unanswered_turn
from sleuth.tools.errors import RunError, SleuthError, UsageError, needs_part
from sleuth.tools.search.retriever import FilteredRetriever
from sleuth.tools.storage.database import is_database_error
from sleuth.tools.storage.id_prefix import MAX_SIMILAR


class Execution(TypedDict, total=False):
    """How a thread is run; all may be omitted."""

    budget: Budget | None
    """Replaces the run's budget; a run that had used up its own resumes."""
    wants_tokens: Callable[[], bool] | None
    """Is called before each model call; True if the tokens of its reply are wanted."""
    callbacks: Callbacks
    """Handlers of LangChain, in addition to those of the run around this one."""
    control: RunControl | None
    """Its `request_drain()` interrupts the run when the steps in progress have ended."""


@dataclass(frozen=True)
class RunService:
    """Service that starts, resumes and reads the runs of one store; without `services` it runs nothing."""

    store: Store
    services: Services | None = None

    # Start

    async def start(
        self,
        request: RunRequest,
        *,
        origin: Origin | None = None,
        pages: StoredPages | None = None,
        turn: Turn | None = None,
    ) -> str:
        """Store a new run without running it, and return its thread.

        The first run of a thread that a client has created without one begins in it.

        Args:
            request: the run.
            origin: the run that this one is a fork or a sub-run of.
            pages: pages that are stored already, instead of those of the request.
            turn: the first turn, of a chat.

        Raises:
            UsageError: a check of the answer without an evidence checker, pages without text, or an invalid name.
            RunError: the thread was used before.
        """
        id = request.thread or uuid.uuid4().hex[:12]
        stored = await self.store.threads.find(id) if request.thread else None
        if stored and not stored.is_empty:
            raise already_used(id)
        if request.thread and not stored:
            await self.store.check_new_name(id)
        self._check_checker(request)
        options = StoredOptions(
            **request.parameters(),
            pages=pages or await self._store_pages(request),
            after=request.after.thread if request.after else "",
            turn=turn,
        )
        thread = Thread(
            id=id,
            owner=self.store.threads.owner,
            method=request.kind.name,
            question=request.question,
            options=options,
            created_at=(created := now()),
            updated_at=created,
            **vars(origin or Origin()),
        )
        await self.store.threads.add(thread, replaces_empty=stored is not None)
        return id

    async def start_like(
        self,
        other: Thread,
        question: str,
        method: str,
        *,
        origin: Origin,
        values: dict[str, Any] | None = None,
        thread: str | None = None,
    ) -> Thread:
        """Store a new run with the profile, the budget, the pages, the model and the filter of another one."""
        parameters = other.options.parameters() | {"values": values or {}}
        request = RunRequest(question=question, method=method, thread=thread, **parameters)
        return await self.store.threads.get(await self.start(request, origin=origin, pages=other.options.pages))

    def _check_checker(self, request: RunRequest) -> None:
        """Raise UsageError if the answer has to be checked, and there is no evidence checker."""
        is_set = "check_evidence" in request.values and getattr(request.settings, "check_evidence", False)
        if self.services and (is_set or request.kind.needs_checker):
            require_checker(self.services.checker)

    async def _store_pages(self, request: RunRequest) -> StoredPages:
        """Archive the text of pages, so that a run can resume without their files."""
        if not request.pages:
            return StoredPages()
        warnings = [warning for page in request.pages for warning in page.warnings]
        if not any(page.text or page.tables for page in request.pages):
            raise UsageError(f"The pages contain no readable text. {'; '.join(warnings)}")
        texts = await self.store.archive.keep([page.to_json() for page in request.pages])
        return StoredPages(texts=list(texts), with_collection=request.with_collection, warnings=warnings)

    # Hold and queue

    @asynccontextmanager
    async def hold(self, id: str) -> AsyncIterator["HeldThread"]:
        """Hold the lock of a thread.

        Raises:
            UnknownName: there is no such run.
            ThreadBusy: it is running.
        """
        async with self.store.locks.hold(id):
            yield await self.held(id)

    async def held(self, id: str) -> "HeldThread":
        """Return a thread whose lock the caller holds."""
        thread = await self.store.threads.get(id)
        return HeldThread(runs=self, thread=thread, state=await self.state(thread))

    async def queue_survey_update(self, id: str) -> None:
        """Queue a finished survey again: its next run asks the new and changed documents.

        Raises:
            UnknownName: there is no such run.
            UsageError: the run is no survey.
            ThreadBusy: it is running.
        """
        async with self.hold(id) as held:
            if held.thread.method != SURVEY:
                raise UsageError(f"Run {id} is no survey: only a survey can be updated.")
            if held.state.values and not held.state.tasks:  # otherwise it has not ended: it is resumed
                await held.queue(Turn(text=held.thread.question, at=checkpoint_id_of(held.state)))

    async def mark_stopped(self, id: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        await self.store.threads.mark_stopped(id, at=now())

    # Run

    async def run(self, id: str, **execution: Unpack[Execution]) -> AsyncGenerator[Event]:
        """Hold the lock of a thread, and yield what `run_held` yields; raise ThreadBusy if another process holds it."""
        async with self.store.locks.hold(id), aclosing(self.run_held(id, **execution)) as events:
            async for event in events:
                yield event

    async def run_held(self, id: str, **execution: Unpack[Execution]) -> AsyncGenerator[Event]:
        """Run a thread, whose lock the caller holds, from its latest checkpoint to its end.

        Yields:
            Its steps as they happen, then its answer.

        Raises:
            GraphDrained: `control` interrupted it; it can be resumed.
            SleuthError: the error that stopped the run; it can be resumed.
        """
        thread, budget = await self.store.threads.get(id), execution.get("budget")
        if budget is not None:
            thread = replace(thread, options=thread.options.model_copy(update={"budget": budget}))
        thread = await self._with_unanswered_turn(thread)
        state: ThreadState = "interrupted"
        problem, worked, result, question = "", None, None, None
        try:
            await self.store.threads.set_state(id, "running", at=now(), options=thread.options if budget else None)
            if budget is not None and not thread.part_of:  # a sub-run is resumed as its outer run left it
                worked = await resume_with_budget(self.graph(thread), self.config(thread))
            async with aclosing(self._events(thread, worked, execution)) as events:
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
            await self.store.threads.set_state(id, state, at=now(), problem=problem, result=result, question=question)

    async def _with_unanswered_turn(self, thread: Thread) -> Thread:
        """Return a chat with the message to send again, if only small talk followed a turn without an answer."""
        state = await self.state(thread) if thread.method == CHAT else None
        if state is None or (turn := unanswered_turn(thread, state)) is None:
            return thread
        await HeldThread(runs=self, thread=thread, state=state).queue(turn)
        return await self.store.threads.get(thread.id)

    async def _events(self, thread: Thread, worked: float | None, execution: Execution) -> AsyncGenerator[Event]:
        before, turn = await self.state(thread), thread.options.turn
        first = None if before.values or before.tasks else {"question": thread.question}
        inputs = input_of_turn(thread, before) if turn else first
        branch = turn.start if turn and turn.start != turn.at else None
        # Not `next`: it lacks a node whose result is committed while the checkpoint after it is not.
        if inputs is not None or (before.tasks and not before.interrupts):
            resumed_step = None if thread.state == "queued" else int((before.metadata or {}).get("step", 0)) + 1
            wanted, answers = execution.get("wants_tokens"), runnable(thread.method).answers
            streams = TokenStream(answers=answers, wants_tokens=wanted, resumed_step=resumed_step) if wanted else None
            context = await self._context(thread, streams)
            worked = 0.0 if isinstance(inputs, dict) else seconds_at(before) if worked is None else worked
            start = self.config(thread, None if inputs is None else branch)
            timed = add_callbacks(with_clock(start, worked), execution.get("callbacks"))
            steps = stream_steps(self.graph(thread), inputs, timed, context, control=execution.get("control"))
            async with aclosing(steps) as events:
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

    # Read

    def graph(self, thread: Thread) -> Compiled:
        """Return the compiled graph of a thread's method with this store's checkpointer."""
        return compile_method(thread.method, self.store.saver)

    def config(self, thread: Thread, checkpoint: str | None = None) -> RunnableConfig:
        """Return LangGraph's config of a thread, or of one of its checkpoints."""
        place = {"thread_id": thread.id, "checkpoint_ns": ""} | ({"checkpoint_id": checkpoint} if checkpoint else {})
        return {"configurable": place, "recursion_limit": RECURSION_LIMIT}

    async def state(self, thread: Thread, checkpoint: str | None = None) -> StateSnapshot:
        """Return the state of a thread's latest checkpoint, or of another one.

        Raises:
            UnknownName: the checkpoint does not exist.
            StoreTooNew: a newer release wrote it.
        """
        graph = self.graph(thread)
        state = await graph.aget_state(self.config(thread, checkpoint))
        if checkpoint and state.created_at is None:  # LangGraph returns an empty state for an unknown checkpoint
            latest = graph.aget_state_history(self.config(thread), limit=MAX_SIMILAR)
            raise unknown_checkpoint(checkpoint, [checkpoint_id_of(other) async for other in latest])
        return accept_state(state)

    async def history(self, thread: Thread) -> list[StateSnapshot]:
        """Return the states of all checkpoints of a thread and of all its branches, the newest first."""
        states = self.graph(thread).aget_state_history(self.config(thread))
        return [accept_state(state) async for state in states]

    async def answer(self, id: str) -> Answer:
        """Return the answer of a finished thread, or of a chat's latest turn; raise RunError while it has none."""
        return await self._answer(await self.store.threads.get(id))

    async def _answer(self, thread: Thread) -> Answer:
        kind, id, state = runnable(thread.method), thread.id, await self.state(thread)
        asks, verdict = dict(state.interrupts[0].value) if state.interrupts else None, state.values.get("verdict")
        if asks:
            from sleuth.graphs.core.approval import describe_request

            text = describe_request(asks) if "action_requests" in asks else str(asks["question"])
            verdict = Verdict(status="waiting", text=text, citations=[])
        if not verdict or (thread.method == CHAT and is_unfinished(thread, state)):
            raise RunError(f"Run {id} is {thread.state} and has no answer yet: `sleuth resume {id}` resumes it.")
        return Answer(
            thread=id,
            checkpoint=checkpoint_id_of(state),
            method=thread.method,
            question=state.values["question"],
            status=verdict["status"],
            text=verdict["text"],
            citations=verdict["citations"],
            notes=public_notes(state.values["notes"]),
            cost=total_cost(state.values["calls"]),
            seconds=seconds_at(state),
            warnings=[*thread.options.pages.warnings, *state.values["warnings"]],
            graph=kind.read_graph(state.values),
            threshold=state.values.get("threshold"),
            support=verdict.get("support"),
            hops=subruns_in(state.values),
            table=kind.read_table(state.values),
            ask_all=verdict.get("ask_all"),
            asks=asks,
            turn=thread.options.turn.id if thread.method == CHAT and thread.options.turn else None,
        )


@dataclass(frozen=True, kw_only=True)
class HeldThread:
    """A thread whose lock is held: as it is stored, with its latest state."""

    runs: RunService
    thread: Thread
    state: StateSnapshot

    async def queue(self, turn: Turn, *, question: str | None = None, **more: Any) -> None:  # noqa: ANN401 - options
        """Store the next turn, with which `run` continues the thread, and more options that change with it."""
        id, options = self.thread.id, self.thread.options.model_copy(update={"turn": turn, **more})
        await self.runs.store.threads.set_state(id, "queued", at=now(), options=options, question=question)


def _describe(error: Exception, id: str) -> str:
    """Return why a run failed."""
    if isinstance(error, SleuthError):
        return str(error)
    what = "The database failed" if is_database_error(error) else "A step failed, which is a bug"
    return f"{what}: {type(error).__name__}: {error}. `sleuth resume {id}` tries again."
