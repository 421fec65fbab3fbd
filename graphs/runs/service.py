"""Durable runs: start, resume and read the runs of a store.

A run is a thread of checkpoints. After an interruption it resumes from its last checkpoint, and no completed model
call is sent again.
"""

import re
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import replace
from typing import Any

from langchain_core.callbacks.base import Callbacks
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from sleuth.agents.llm.token_stream import TokenStream
from sleuth.graphs.chat.small_talk import is_answered_by_rule, settings_of_command
from sleuth.graphs.core.answer import Answer, Verdict, public_notes, subruns_in, total_cost
from sleuth.graphs.core.approval import describe_request
from sleuth.graphs.core.context import Budget, Context, MethodSettings, Services
from sleuth.graphs.core.events import Event, parse_event
from sleuth.graphs.core.method import Method
from sleuth.graphs.core.state import SCHEMA_VERSION
from sleuth.graphs.core.wall_clock import seconds_at, with_clock
from sleuth.graphs.evidence.check import require_checker
from sleuth.graphs.persistence.sqlite_checkpoints import advance_clock
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.threads import (
    NAME,
    Origin,
    RunResult,
    StoredOptions,
    StoredPages,
    Thread,
    ThreadState,
    Turn,
    already_used,
)
from sleuth.graphs.registry import CHAT, SURVEY, configure, runnable
from sleuth.graphs.runs.execution import (
    RECURSION_LIMIT,
    Compiled,
    StoreSubruns,
    checkpoint_id_of,
    compile_method,
    now,
    resume_with_budget,
    stream_steps,
)
from sleuth.graphs.runs.turns import (
    first_turn,
    input_for,
    is_unfinished,
    next_turn,
    pending_interrupt,
    state_before,
    unanswered_question,
)
from sleuth.tools.errors import RunError, SleuthError, StoreTooNew, UnknownName, UsageError
from sleuth.tools.search.retriever import FilteredRetriever
from sleuth.tools.settings import Profile
from sleuth.tools.sources.web_pages.page import PageText
from sleuth.tools.sources.web_pages.retriever import FusedRetriever, PageRetriever
from sleuth.tools.storage.database import is_database_error
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.storage.id_prefix import MAX_SIMILAR
from sleuth.tools.text.normalization import check_unicode
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
        after: Answer | None = None,
        model: str = "",
        message_id: str = "",
        is_created: bool = False,
    ) -> str:
        """Store a new run, the next message of a chat, or the reply to a waiting run, without running it.

        Args:
            pages: pages that are stored with the run and searched instead of the collection; a chat keeps those of its
                first message.
            with_collection: search the collection in addition to the pages.
            where: a filter of the documents that are searched, see `parse_filter`; a chat keeps that of its first
                message.
            after: the answer that the first message of a chat follows up on: the chat begins with it and its question.
            model: the model that is used instead of the default.
            message_id: the id of the first message of a chat; by default one is derived from its place.
            is_created: a client has created the thread without a run, which begins in it.

        Returns:
            The thread.

        Raises:
            UsageError: an empty or too long question, an unknown method or setting, pages without text, a filter that
                cannot be parsed, a check of the answer without an evidence checker, or an invalid name of a thread.
            RunError: the thread was used before, unless it is a chat or waits for a reply.
        """
        checked, origin = check_question(question), origin or Origin()
        kind, id = runnable(method_name), thread or uuid.uuid4().hex[:12]
        if not is_created and await self.store.threads.exists(id):
            known = await self.store.threads.find(id)
            if known is None or known.method != method_name or after:
                raise already_used(id)
            await self.add_turn(known, checked, values=values or {}, keep_values=True, budget=budget or Budget())
            return id
        if thread:
            await self._check_name(thread)
        self._check_settings(kind, configure(kind, values or {}, profile))
        more = _given_options(where, model=model, after=after.thread if after else "")
        is_chat, values = method_name == CHAT.name, values or {}
        if is_chat:
            values = {**values, **settings_of_command(checked)}
            more["turn"] = first_turn(checked, after, message_id=message_id)
        options = StoredOptions(
            values=values,
            profile=profile,
            budget=budget or Budget(),
            pages=await self._store_pages(pages, with_collection=with_collection),
            **more,
        )
        created = now()
        await self.store.threads.add(
            Thread(
                id=id,
                owner=self.store.threads.owner,
                method=method_name,
                question="" if is_chat and is_answered_by_rule(checked) else checked,
                options=options,
                parent=origin.parent,
                parent_checkpoint=origin.checkpoint,
                subrun=origin.subrun,
                created_at=created,
                updated_at=created,
            ),
            is_created=is_created,
        )
        return id

    def _check_settings(self, kind: Method, settings: MethodSettings) -> None:
        if self.services is not None and (getattr(settings, "check_evidence", False) or not kind.needs_model):
            require_checker(self.services.checker)

    async def _check_name(self, id: str) -> None:
        """Raise UsageError if a new run cannot have this name."""
        if not re.fullmatch(NAME, id):
            raise UsageError(
                f"{id[:200]!r} is not a valid run name. Use 1 to {LONGEST_NAME} letters, digits and . _ @ : -."
            )
        if await self.store.saver.aget_tuple({"configurable": {"thread_id": id}}):
            raise UsageError(f"The name {id} already has checkpoints. Choose another name.")

    async def start_like(
        self,
        other: Thread,
        question: str,
        method_name: str,
        *,
        origin: Origin,
        values: dict[str, Any] | None = None,
        thread: str | None = None,
    ) -> Thread:
        """Store a new run with the profile, the budget, the pages and the filter of another one, and return it."""
        kept = other.options
        id = await self.start(
            question,
            method_name,
            values=values,
            profile=kept.profile,
            budget=kept.budget,
            thread=thread,
            pages=await self._pages_of(other),
            with_collection=kept.pages.beside,
            where=kept.where,
            model=kept.model,
            origin=origin,
        )
        return await self.store.threads.get(id)

    async def _store_pages(self, pages: Sequence[PageText], *, with_collection: bool) -> StoredPages:
        """Archive the text of pages, so that a run can resume without their files."""
        if not pages:
            return StoredPages()
        warnings = [warning for page in pages for warning in page.warnings]
        if not any(page.text or page.tables for page in pages):
            raise UsageError(f"The pages contain no readable text. {'; '.join(warnings)}")
        texts = await self.store.archive.keep([page.to_json() for page in pages])
        return StoredPages(texts=list(texts), beside=with_collection, warnings=warnings)

    async def _pages_of(self, thread: Thread) -> tuple[PageText, ...]:
        """Return the pages of a thread as they were when it was started."""
        return tuple(map(PageText.from_json, await self.store.archive.load(thread.options.pages.texts)))

    async def add_turn(
        self,
        thread: Thread,
        given: str | Command[Any],
        *,
        start: str | None = None,
        message_id: str = "",
        values: dict[str, Any],
        keep_values: bool = False,
        budget: Budget,
        is_locked: bool = False,
    ) -> None:
        """Store the next input of a thread; `run` then continues it.

        The input is stored with the id of the latest checkpoint. While that checkpoint is still the latest, `run` sends
        the input; later it only resumes. A message after a turn that ended without an answer starts a new turn: the
        messages of the chat state why the turn before has no answer.

        Args:
            thread: a chat, or a run that waits for a reply.
            given: a message, or the reply to an interrupt, which may be any JSON.
            start: None continues the conversation, and a message replies to an open question. A checkpoint id ("" for
                the latest) starts a new turn there, and a message drops an open interrupt.
            message_id: the id of the message; by default one is derived from its place.
            values: the settings from this turn on.
            keep_values: keep the earlier settings that `values` does not name.
            budget: limits of this turn of a chat; another run keeps its own if none are given.
            is_locked: the caller holds the lock of the thread.

        Raises:
            UsageError: a setting cannot be used, or nothing waits for the reply.
            UnknownName: the checkpoint does not exist.
            RunError: a reply was given already, or the run is no chat and waits for nothing.
            ThreadBusy: a turn is running.
        """
        is_chat, is_reply = thread.method == CHAT.name, isinstance(given, Command)
        async with nullcontext() if is_locked else self.store.locks.hold(thread.id):
            thread = await self.store.threads.get(thread.id)  # it may have changed before the lock was taken
            text = given if isinstance(given, str) else ""
            values = {**(thread.options.values if keep_values else {}), **values}
            values |= settings_of_command(text) if is_chat else {}
            configure(runnable(thread.method), values, thread.options.profile)
            latest = await self.state(thread)
            if not (is_chat or is_reply or latest.interrupts):
                raise already_used(thread.id)
            state = await self.state(thread, start) if start else latest
            if is_reply and not state.interrupts:
                raise UsageError(f"Thread {thread.id} does not wait for a reply.")
            turn = next_turn(thread, latest, given, start=start, message_id=message_id)
            update: dict[str, Any] = {"values": values}
            if is_chat or budget != Budget():  # a reply does not lift the limits of a run
                update["budget"] = budget
            is_first = is_chat and not thread.question and not is_answered_by_rule(text)
            await self._queue(thread, turn, question=text if is_first else None, **update)

    async def _queue(
        self,
        thread: Thread,
        turn: Turn,
        *,
        question: str | None = None,
        **update: Any,  # noqa: ANN401 - further options
    ) -> None:
        options = thread.options.model_copy(update={"turn": turn, **update})
        await self.store.threads.set_state(thread.id, "queued", at=now(), options=options, question=question)

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
        text = unanswered_question(thread, await self.state(thread)) if thread.method == CHAT.name else ""
        if not text:
            return thread
        options = thread.options
        await self.add_turn(thread, text, values=options.values, budget=options.budget, is_locked=True)
        return await self.store.threads.get(thread.id)

    async def queue_survey_update(self, id: str) -> None:
        """Queue a finished survey again: its next run asks the new and changed documents.

        Raises:
            UnknownName: there is no such run.
            UsageError: the run is no survey.
            ThreadBusy: it is running.
        """
        async with self.store.locks.hold(id):
            thread = await self.store.threads.get(id)
            if thread.method != SURVEY.name:
                raise UsageError(f"Run {id} is no survey: only a survey can be updated.")
            state = await self.state(thread)
            if state.tasks or not state.values:  # it has not ended: it is resumed
                return
            await self._queue(thread, Turn(text=thread.question, at=checkpoint_id_of(state)))

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
        thread = await self.store.threads.get(id)
        await self.add_turn(thread, Command(resume=value), values={}, keep_values=True, budget=Budget())

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
        given, turn = input_for(thread, before), thread.options.turn
        branch = turn.start if turn and turn.start != turn.at else None
        # Not `next`: it lacks a node whose result is committed while the checkpoint after it is not.
        if given is not None or (before.tasks and not before.interrupts):
            resumed_step = None if thread.state == "queued" else int((before.metadata or {}).get("step", 0)) + 1
            token_stream = TokenStream(wants_tokens=wants_tokens, resumed_step=resumed_step) if wants_tokens else None
            context = await self._context(thread, token_stream)
            worked = 0.0 if isinstance(given, dict) else seconds_at(before) if worked is None else worked
            start = self.config(thread, None if given is None else branch)
            timed = add_callbacks(with_clock(start, worked), callbacks)
            async with aclosing(stream_steps(self.graph(thread), given, timed, context, control=control)) as events:
                async for event in events:
                    about = {"thread": thread.id, "method": thread.method, "part_of": thread.part_of}
                    of_turn = {"turn": turn.id} if turn and "state" in event else {}
                    yield parse_event({**about, **event, **of_turn})
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
            latest = graph.aget_state_history(self.config(thread), limit=MAX_SIMILAR)
            known = [checkpoint_id_of(each) async for each in latest]
            raise unknown_checkpoint(checkpoint, known)
        return accept_state(state)

    async def history(self, thread: Thread) -> list[StateSnapshot]:
        """Return the states of all checkpoints of a thread and of all its branches, the newest first."""
        states = self.graph(thread).aget_state_history(self.config(thread))
        return [accept_state(state) async for state in states]

    async def _context(self, thread: Thread, token_stream: TokenStream | None) -> Context:
        if self.services is None:
            raise RunError("This store was opened for reading: open it with services to run something.")
        pages, retriever = await self._pages_of(thread), self.services.retriever
        if where := thread.options.where:
            retriever = FilteredRetriever(retriever, where)
        if pages:
            over = PageRetriever.over(pages, self.services.embedder)
            retriever = FusedRetriever(over, retriever) if thread.options.pages.beside else over
        return self.services.context(
            retriever=retriever,
            pages=pages,
            archive=self.store.archive,
            settings=configure(runnable(thread.method), thread.options.values, thread.options.profile),
            budget=thread.options.budget,
            hops=StoreSubruns(runs=self, outer=thread),
            token_stream=token_stream,
        )

    async def answer(self, id: str) -> Answer:
        """Return the answer of a finished thread, or of a chat's latest turn; raise RunError while it has none."""
        return await self._answer(await self.store.threads.get(id))

    async def _answer(self, thread: Thread) -> Answer:
        kind, id, state = runnable(thread.method), thread.id, await self.state(thread)
        asks, verdict = pending_interrupt(state), state.values.get("verdict")
        if asks:
            text = describe_request(asks) if "action_requests" in asks else str(asks["question"])
            verdict = Verdict(status="waiting", text=text, citations=[])
        if not verdict or (thread.method == CHAT.name and is_unfinished(thread, state)):
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
            turn=thread.options.turn.id if thread.method == CHAT.name and thread.options.turn else None,
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


def accept_state(state: StateSnapshot) -> StateSnapshot:
    """Return the state. Raise StoreTooNew if a newer release wrote it. New checkpoints get later ids than this one."""
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


def _describe(error: Exception, id: str) -> str:
    """Return why a run failed."""
    if isinstance(error, SleuthError):
        return str(error)
    what = "The database failed" if is_database_error(error) else "A step failed, which is a bug"
    return f"{what}: {type(error).__name__}: {error}. `sleuth resume {id}` tries again."


def _given_options(where: str, **values: str) -> dict[str, Any]:
    """Return the options that are given, and the filter if it has terms."""
    options = {"where": where.strip() if parse_filter(where).terms else "", **values}
    return {name: value for name, value in options.items() if value}
