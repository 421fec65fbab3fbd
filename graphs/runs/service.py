"""Durable runs: the only place that starts and resumes methods.

A run is a thread of checkpoints. After an interruption it resumes from its last checkpoint, and no completed model
call is sent again.
"""

import re
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import asdict, replace
from typing import Any

from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from sleuth.agents.llm.token_stream import TokenStream
from sleuth.graphs.core.answer import Answer, public_notes, total_cost
from sleuth.graphs.core.context import Budget, Context, Services
from sleuth.graphs.core.events import Event, parse_event
from sleuth.graphs.core.state import SCHEMA_VERSION
from sleuth.graphs.core.wall_clock import seconds_at, with_clock
from sleuth.graphs.evidence.check import require_checker
from sleuth.graphs.persistence import (
    LONGEST_NAME,
    NAME,
    Origin,
    RunResult,
    Store,
    StoredOptions,
    Thread,
    ThreadState,
    Turn,
)
from sleuth.graphs.persistence.sqlite_checkpoints import advance_clock
from sleuth.graphs.registry import CHAT, SURVEY, configure, runnable
from sleuth.graphs.runs import chat_turns
from sleuth.graphs.runs.execution import (
    RECURSION_LIMIT,
    Compiled,
    checkpoint_id_of,
    compile_method,
    explain_changed_state,
    now,
    resume_with_budget,
    stream_steps,
)
from sleuth.graphs.runs.pages import load_pages, make_retriever, store_pages
from sleuth.graphs.runs.subruns import StoreSubruns
from sleuth.tools.errors import RunError, SleuthError, StoreTooNew, UnknownName, UsageError
from sleuth.tools.settings import Profile
from sleuth.tools.sources.web_pages.page import PageText
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.text import check_unicode
from sleuth.tools.tracing.callbacks import add_callbacks

MAX_QUESTION = 20_000
"""Characters; longer questions are documents."""


class RunService:
    """Service that starts, resumes and reads the runs of one store."""

    def __init__(self, store: Store, services: Services | None = None) -> None:
        self.store = store
        self.services = services

    async def start(
        self,
        question: str,
        method_name: str,
        *,
        values: dict[str, Any] | None = None,
        profile: Profile = "default",
        budget: Budget | None = None,
        thread: str | None = None,
        pages: Sequence[PageText] = (),
        with_collection: bool = False,
        where: str = "",
        origin: Origin | None = None,
    ) -> str:
        """Store a new run, the next message of a chat, or the reply to a waiting run, without running it.

        Args:
            pages: pages that are stored with the run and searched instead of the collection; a chat keeps those of its
                first message.
            with_collection: search the collection in addition to the pages.
            where: a filter of the documents that are searched, see `parse_filter`; a chat keeps that of its first
                message.

        Returns:
            The thread.

        Raises:
            UsageError: an empty or too long question, an unknown method or setting, pages without text, a filter that
                cannot be parsed, a check of the answer without an evidence checker, or a thread whose name is invalid
                or was used before, unless it is a chat or waits for a reply.
            RunError: the last turn of the chat has not ended.
        """
        checked = check_question(question)
        kind, id = runnable(method_name), thread or uuid.uuid4().hex[:12]
        if await self.store.threads.exists(id):
            return await self._add_message(id, checked, method_name, values or {}, budget or Budget())
        if not re.fullmatch(NAME, id):
            raise UsageError(
                f"A run's name has 1 to {LONGEST_NAME} letters, digits and . _ @ : -, unlike {id[:200]!r}."
            )
        settings = configure(kind, values or {}, profile)
        if self.services is not None and settings.requires_checker():
            require_checker(self.services.checker)
        if thread and await self.store.saver.aget_tuple({"configurable": {"thread_id": id}}):
            raise UsageError(
                f"The name {id} has checkpoints, but no run: it cannot be given to one. Choose another name."
            )
        more: dict[str, Any] = {"hop": origin.hop} if origin and origin.hop else {}
        more |= {"where": where.strip()} if parse_filter(where).terms else {}
        more |= {"turn": Turn(text=checked, at="")} if method_name == CHAT.name else {}
        options = StoredOptions(
            values=values or {},
            profile=profile,
            budget=budget or Budget(),
            pages=await store_pages(self.store.archive, pages, with_collection=with_collection),
            **more,
        )
        created = now()
        await self.store.threads.add(
            Thread(
                id=id,
                owner=self.store.threads.owner,
                method=method_name,
                question=checked,
                options=options,
                parent=origin.parent if origin else "",
                parent_checkpoint=origin.checkpoint if origin else "",
                created_at=created,
                updated_at=created,
            )
        )
        return id

    async def _add_message(self, id: str, message: str, name: str, values: dict[str, Any], budget: Budget) -> str:
        thread = await self.store.threads.find(id)
        if thread is None or thread.method != name:
            raise chat_turns.already_used(id)
        chosen = {**thread.options.values, **values}
        await chat_turns.add_turn(self, thread, message, values=chosen, budget=budget)
        return id

    async def run(
        self,
        id: str,
        *,
        budget: Budget | None = None,
        listening: Callable[[], bool] | None = None,
        callbacks: Callbacks = None,
        control: RunControl | None = None,
        is_locked: bool = False,
    ) -> AsyncGenerator[Event]:
        """Run a thread from its latest checkpoint to its end; yield its steps as they happen, then its answer.

        Args:
            id: the thread.
            budget: replaces the run's budget; a run that had used up its own resumes.
            listening: is called before each model call; True if the tokens of its reply are wanted.
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
                await self.store.threads.set_options(id, thread.options)
            state: ThreadState = "interrupted"
            problem, worked, result = "", None, None
            try:
                await self.store.threads.set_state(id, "running", at=now())
                if budget is not None and not thread.part_of:  # a sub-run is resumed as its outer run left it
                    worked = await resume_with_budget(self.graph(thread), self.config(thread))
                async with aclosing(self._events(thread, listening, callbacks, control, worked)) as events:
                    async for event in events:
                        if isinstance(event, Answer):
                            state, result = "waiting" if event.asks else "done", RunResult.of(event)
                        yield event
            except SleuthError as error:
                state, problem = "failed", str(error)
                raise
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                state, problem = "failed", await explain_changed_state(self.graph(thread), self.config(thread), error)
                raise RunError(problem) from error
            finally:
                await self.store.threads.set_state(id, state, at=now(), problem=problem, result=result)

    async def update(self, id: str) -> None:
        """Have a finished survey ask the documents that are new or have changed since, when it is run the next time.

        Raises:
            UnknownName: there is no such run.
            UsageError: the run is no survey.
            ThreadBusy: it is running.
        """
        thread = await self.store.threads.get(id)
        if thread.method != SURVEY.name:
            raise UsageError(f"Run {id} is no survey: only a survey can be updated.")
        async with self.store.locks.hold(id):
            state = await self.state(thread)
            if state.tasks or not state.values:  # it has not ended: it is resumed
                return
            turn = Turn(text=thread.question, at=checkpoint_id_of(state))
            await self.store.threads.set_options(id, thread.options.model_copy(update={"turn": turn}))
            await self.store.threads.set_state(id, "queued", at=now())

    async def reply(self, id: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Store the reply to a waiting run, which continues when it is run the next time.

        Args:
            id: the run.
            value: a text, or JSON in the form that the request names.

        Raises:
            UnknownName: there is no such run.
            UsageError: the run does not wait for a reply.
            ThreadBusy: it is running.
        """
        thread, reply = await self.store.threads.get(id), chat_turns.Reply(value=value)
        await chat_turns.add_turn(self, thread, reply, values=thread.options.values, budget=Budget())

    async def with_results(self, threads: Sequence[Thread]) -> list[Thread]:
        """Return threads with the results of those that an older release finished; these are stored, too."""
        found = list(threads)
        for at, thread in enumerate(found):
            if thread.outcome == "done":
                with suppress(SleuthError):  # its checkpoints are damaged
                    result = RunResult.of(await self._answer(thread))
                    await self.store.threads.set_result(thread.id, result)
                    found[at] = replace(thread, **asdict(result))
        return found

    async def stopped(self, id: str) -> None:
        """Record that a person stopped a run, unless it has ended, failed or been resumed."""
        await self.store.threads.mark_stopped(id, at=now())

    async def _events(
        self,
        thread: Thread,
        listening: Callable[[], bool] | None,
        callbacks: Callbacks,
        control: RunControl | None,
        worked: float | None,
    ) -> AsyncGenerator[Event]:
        before = await self.state(thread)
        given, turn = chat_turns.input_for(thread, before), thread.options.turn
        branch = turn.start if turn and turn.start != turn.at else None
        # Not `next`: it lacks a node whose result is committed while the checkpoint after it is not.
        if given is not None or (before.tasks and not before.interrupts):
            again = None if thread.state == "queued" else int((before.metadata or {}).get("step", 0)) + 1
            token_stream = TokenStream(listening=listening, again=again) if listening else None
            context = await self._context(thread, token_stream)
            worked = 0.0 if isinstance(given, dict) else seconds_at(before) if worked is None else worked
            start = self.config(thread, None if given is None else branch)
            timed = add_callbacks(with_clock(start, worked), callbacks)
            async with aclosing(stream_steps(self.graph(thread), given, timed, context, control=control)) as events:
                async for event in events:
                    yield parse_event(
                        {"thread": thread.id, "method": thread.method, "part_of": thread.part_of, **event}
                    )
        yield await self._answer(thread)

    def graph(self, thread: Thread) -> Compiled:
        """Return the compiled graph of a thread's method with this store's checkpointer."""
        return compile_method(runnable(thread.method).name, self.store.saver)

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
            known = [checkpoint_id_of(each) async for each in graph.aget_state_history(self.config(thread))]
            raise unknown_checkpoint(checkpoint, known)
        return check_version(state)

    async def history(self, thread: Thread) -> list[StateSnapshot]:
        """Return the states of all checkpoints of a thread and of all its branches, the newest first."""
        states = self.graph(thread).aget_state_history(self.config(thread))
        return [check_version(state) async for state in states]

    async def _context(self, thread: Thread, token_stream: TokenStream | None) -> Context:
        if self.services is None:
            raise RunError("This store was opened for reading: open it with services to run something.")
        pages = await load_pages(self.store.archive, thread)
        return self.services.context(
            retriever=make_retriever(thread, pages, self.services.retriever, self.services.embedder),
            pages=pages,
            archive=self.store.archive,
            settings=configure(runnable(thread.method), thread.options.values, thread.options.profile),
            budget=thread.options.budget,
            hops=StoreSubruns(runs=self, outer=thread, listening=token_stream.listening if token_stream else None),
            token_stream=token_stream,
        )

    async def answer(self, id: str) -> Answer:
        """Return the answer of a finished thread, or of a chat's latest turn; raise RunError while it has none."""
        return await self._answer(await self.store.threads.get(id))

    async def _answer(self, thread: Thread) -> Answer:
        kind, id, state = runnable(thread.method), thread.id, await self.state(thread)
        asks = chat_turns.pending_interrupt(state)
        verdict = chat_turns.interrupt_as_verdict(asks) if asks else state.values.get("verdict")
        if not verdict or (thread.method == CHAT.name and chat_turns.is_unfinished(thread, state)):
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
            hops=kind.read_subruns(state.values),
            table=kind.read_table(state.values),
            asks=asks,
        )


def check_question(question: str) -> str:
    """Return the question without surrounding white space; raise UsageError if it is empty or too long."""
    stripped = question.strip()
    if not stripped:
        raise UsageError("The question is empty.")
    if len(stripped) > MAX_QUESTION:
        raise UsageError(
            f"The question has {len(stripped):,} characters, the most is {MAX_QUESTION:,}: "
            "put long material into a file, `sleuth ingest` it, and ask about it."
        )
    check_unicode(stripped)
    return stripped.replace("\x00", "")


def check_version(state: StateSnapshot) -> StateSnapshot:
    """Return a state, before which no new checkpoint is placed; raise StoreTooNew for one of a newer release."""
    advance_clock(checkpoint_id_of(state))
    found = int((state.values or {}).get("schema_version", 1))  # the first layout has no field for it
    if found > SCHEMA_VERSION:
        raise StoreTooNew(
            f"This checkpoint was written by a newer release (state version {found}, this release reads up to "
            f"{SCHEMA_VERSION}): upgrade sleuth to resume it."
        )
    return state


def unknown_checkpoint(id: str, known: list[str]) -> UnknownName:
    """Return the error for a checkpoint that a thread does not have."""
    return UnknownName("checkpoint", id, known, "`sleuth runs history` shows them, by id, step and node.")
