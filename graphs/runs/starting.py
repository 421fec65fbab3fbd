"""Starting of runs: what the next run of a thread begins with is stored, and nothing runs."""

import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from langgraph.types import StateSnapshot

from sleuth.graphs.chat.small_talk import is_answered_by_rule, settings_of_command
from sleuth.graphs.core.context import Budget, MethodSettings, Services
from sleuth.graphs.core.method import CHAT, SURVEY, Method
from sleuth.graphs.evidence.check import require_checker
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.thread import NAME, Origin, StoredOptions, StoredPages, Thread, Turn
from sleuth.graphs.persistence.threads import already_used
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.execution import checkpoint_id_of, now, with_paused_clock
from sleuth.graphs.runs.reading import RunReader
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.turns import branching_turn, continuing_turn, first_turn, read_reply, replying_turn
from sleuth.tools.errors import RunError, UsageError
from sleuth.tools.langgraph_internals import COPY


class RunStarter(RunReader):
    """Starter of runs in one store; with the services of runs, it checks that they have what a run needs."""

    def __init__(self, store: Store, services: Services | None = None) -> None:
        super().__init__(store)
        self.services = services

    async def start(self, request: RunRequest, *, origin: Origin | None = None) -> str:
        """Store a new run, the next message of a chat, or the reply to a waiting run, without running it.

        A chat keeps the pages and the filter of its first message. The first run of a thread that a client has created
        without one begins in it.

        Returns:
            The thread.

        Raises:
            UsageError: a check of the answer without an evidence checker, pages without text, or an invalid name.
            RunError: the thread was used before, unless it is a chat or waits for a reply.
        """
        kind, id = request.kind, request.thread or uuid.uuid4().hex[:12]
        stored = await self.store.threads.find(id) if request.thread else None
        if stored and not stored.is_empty:
            if stored.method != kind.name or request.after or (kind.name != CHAT and stored.state != "waiting"):
                raise already_used(id)
            await self.continue_thread(stored, request)
            return id
        if request.thread and not stored:
            await self._check_name(id)
        values, turn = request.values, None
        if kind.name == CHAT:
            values = {"method": request.default_method, **values, **settings_of_command(request.question)}
            turn = first_turn(request.question, request.after, message_id=request.message_id)
        self._check_settings(kind, configure(kind, values, request.profile))
        options = StoredOptions(
            **request.parameters() | {"values": values},
            pages=await self._store_pages(request),
            after=request.after.thread if request.after else "",
            turn=turn,
        )
        is_small_talk = kind.name == CHAT and is_answered_by_rule(request.question)
        thread = self._new_thread(id, kind.name, "" if is_small_talk else request.question, options, origin or Origin())
        await self.store.threads.add(thread, replaces_empty=stored is not None)
        return id

    def _new_thread(self, id: str, method: str, question: str, options: StoredOptions, origin: Origin) -> Thread:
        created = now()
        return Thread(
            id=id,
            owner=self.store.threads.owner,
            method=method,
            question=question,
            options=options,
            parent=origin.parent,
            parent_checkpoint=origin.checkpoint,
            subrun=origin.subrun,
            created_at=created,
            updated_at=created,
        )

    def _check_settings(self, kind: Method, settings: MethodSettings) -> None:
        if self.services is not None and (getattr(settings, "check_evidence", False) or kind.needs_checker):
            require_checker(self.services.checker)

    async def _check_name(self, id: str) -> None:
        """Raise UsageError or RunError if a new run cannot have this name."""
        if not re.fullmatch(NAME, id):
            raise UsageError(
                f"{id[:200]!r} is not a valid run name. Use 1 to {LONGEST_NAME} letters, digits and . _ @ : -."
            )
        if await self.store.threads.exists(id):  # of another owner
            raise already_used(id)
        if await self.store.saver.aget_tuple({"configurable": {"thread_id": id}}):
            raise UsageError(f"The name {id} already has checkpoints. Choose another name.")

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
        request = RunRequest(question=question, method=method, **parameters)
        id = thread or uuid.uuid4().hex[:12]
        if thread:
            await self._check_name(id)
        self._check_settings(request.kind, request.settings)
        options = StoredOptions(**parameters, pages=other.options.pages)
        await self.store.threads.add(self._new_thread(id, request.kind.name, request.question, options, origin))
        return await self.store.threads.get(id)

    async def _store_pages(self, request: RunRequest) -> StoredPages:
        """Archive the text of pages, so that a run can resume without their files."""
        if not request.pages:
            return StoredPages()
        warnings = [warning for page in request.pages for warning in page.warnings]
        if not any(page.text or page.tables for page in request.pages):
            raise UsageError(f"The pages contain no readable text. {'; '.join(warnings)}")
        texts = await self.store.archive.keep([page.to_json() for page in request.pages])
        return StoredPages(texts=list(texts), with_collection=request.with_collection, warnings=warnings)

    async def continue_thread(self, thread: Thread, request: RunRequest, *, is_locked: bool = False) -> None:
        """Store a message, with which `run` continues a chat or replies to what the thread waits for.

        A message after a turn that ended without an answer starts a new turn: the messages of the chat state why the
        turn before has no answer. Settings that the request does not name stay as they are.

        Args:
            thread: a chat, or a run that waits for a reply.
            request: the message; its budget limits this turn of a chat, another run keeps its own if none is given.
            is_locked: the caller holds the lock of the thread.

        Raises:
            UsageError: a setting or the reply cannot be used.
            RunError: a reply was given already, or the run is no chat and waits for nothing.
            ThreadBusy: a turn is running.
        """
        async with self._locked(thread, is_locked=is_locked) as (current, latest):
            was_waiting = thread.state == "waiting"
            turn = continuing_turn(
                current, latest, request.question, message_id=request.message_id, was_waiting=was_waiting
            )
            await self._queue_message(current, turn, request)

    async def branch_chat(
        self,
        thread: Thread,
        request: RunRequest,
        *,
        checkpoint: str = "",
        keep_settings: bool = True,
        is_locked: bool = False,
    ) -> None:
        """Store a message that starts a new turn at a checkpoint, by default the latest; an open question is dropped.

        Without `keep_settings`, settings that the request does not name are the default ones.

        Raises:
            UnknownName: the checkpoint does not exist.
            UsageError: a setting cannot be used.
            ThreadBusy: a turn is running.
        """
        async with self._locked(thread, is_locked=is_locked) as (current, latest):
            if checkpoint:
                await self.state(current, checkpoint)
            turn = branching_turn(current, latest, request.question, start=checkpoint, message_id=request.message_id)
            await self._queue_message(current, turn, request, keep_settings=keep_settings)

    @asynccontextmanager
    async def _locked(self, thread: Thread, *, is_locked: bool) -> AsyncIterator[tuple[Thread, StateSnapshot]]:
        """Hold the lock of a thread, and return the thread as it is now and its latest state."""
        async with nullcontext() if is_locked else self.store.locks.hold(thread.id):
            current = await self.store.threads.get(thread.id)
            yield current, await self.state(current)

    async def _queue_message(
        self, thread: Thread, turn: Turn, request: RunRequest, *, keep_settings: bool = True
    ) -> None:
        text, is_chat, budget = request.question, thread.method == CHAT, request.budget
        earlier = thread.options.values if keep_settings else {}
        values = {**earlier, **request.values, **(settings_of_command(text) if is_chat else {})}
        configure(runnable(thread.method), values, thread.options.profile)
        is_first = is_chat and not thread.question and not is_answered_by_rule(text)
        limits = {"budget": budget} if is_chat or budget != Budget() else {}  # a reply lifts no limits of a run
        await self._queue(thread, turn, question=text if is_first else None, values=values, **limits)

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

    async def queue_survey_update(self, id: str) -> None:
        """Queue a finished survey again: its next run asks the new and changed documents.

        Raises:
            UnknownName: there is no such run.
            UsageError: the run is no survey.
            ThreadBusy: it is running.
        """
        async with self.store.locks.hold(id):
            thread = await self.store.threads.get(id)
            if thread.method != SURVEY:
                raise UsageError(f"Run {id} is no survey: only a survey can be updated.")
            state = await self.state(thread)
            if state.tasks or not state.values:  # it has not ended: it is resumed
                return
            await self._queue(thread, Turn(text=thread.question, at=checkpoint_id_of(state)))

    async def reply(self, id: str, value: Any, *, checkpoint: str = "") -> None:  # noqa: ANN401 - any JSON
        """Store the reply to a waiting run, which continues when it is run the next time.

        Args:
            id: the run.
            value: a text, or JSON in the form that the request names.
            checkpoint: an earlier state that waited, from which the run branches; by default the latest state.

        Raises:
            UnknownName: there is no such run or checkpoint.
            UsageError: the run cannot use the reply.
            RunError: the run does not wait for a reply, or a reply was given already.
            ThreadBusy: it is running.
        """
        async with self._locked(await self.store.threads.get(id), is_locked=False) as (thread, latest):
            state = await self.state(thread, checkpoint) if checkpoint else latest
            if not state.interrupts:
                raise RunError(f"Thread {id} does not wait for a reply: send a message instead.")
            value = read_reply(thread.method, state, value)
            if checkpoint_id_of(state) == checkpoint_id_of(latest):
                await self._queue(thread, replying_turn(thread, latest, value))
                return
            # A copy: the state itself has its earlier reply, which LangGraph would take.
            at = await self.graph(thread).aupdate_state(with_paused_clock(state.config, state), None, as_node=COPY)
            turn = Turn(reply=json.dumps(value), at=at["configurable"]["checkpoint_id"], id=uuid.uuid4().hex)
            await self._queue(thread, turn)
