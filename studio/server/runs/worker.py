"""Background runs: at most one job per thread, independent of the request that started it.

The threads with a job are stored in a queue, with the requests to stop them, so that after a kill or a shutdown the
next start, or another server, resumes them. A run is queued, and a message of a chat becomes its turn, in one
transaction with the job. A job holds its thread's lock until its last event is stored: of several servers only one
writes anything about a thread.
"""

import asyncio
import logging
import math
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from sqlalchemy import Boolean, Column, Integer, MetaData, String, Table, Text, delete, insert, select, update
from sqlalchemy.engine import Connection, Engine

from sleuth.graphs.chat.sending import branch_chat
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.thread_locks import check_token
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import now
from sleuth.graphs.runs.history import replay_steps
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.retry import retry_until_stored
from sleuth.studio.server.runs.event_log import EventLog
from sleuth.studio.server.schemas.errors import describe_failure
from sleuth.studio.server.telemetry.logs import log_fields
from sleuth.studio.server.telemetry.metrics import RunRecord, Telemetry
from sleuth.studio.tenants import Tenants
from sleuth.tools.errors import RunError, SleuthError, StoreBusy, ThreadBusy, UnknownName
from sleuth.tools.storage.database import in_thread, is_database_error, make_tables, transaction

_log = logging.getLogger(__name__)

REBUILD_WAIT = 60.0
"""Seconds that a run waits while another process needs the home alone; a recovered run waits until it has finished."""

LISTENER_GRACE = 10.0
"""Seconds in which a run streams its replies before anybody listens: clients follow a run right after its start."""

DRAIN_WAIT = 5.0
"""Seconds that the steps in progress have to end at a shutdown: their model calls need not be repeated then."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at what the other servers of the store do."""

STOP_WAIT = 10.0
"""Seconds to wait for another server that stops a run; it stops the run also later."""

MAX_MESSAGES = 20
"""Messages of one chat that wait for their turns."""

_LAST_EVENT = 2**31 - 1

metadata = MetaData()
jobs = Table(
    "sleuth_serve_jobs",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
    Column("stopping", Boolean, nullable=False),
)
messages = Table(
    "sleuth_serve_messages",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("thread", String(LONGEST_NAME), nullable=False, index=True),
    Column("owner", String(100), nullable=False),
    Column("is_reply", Boolean, nullable=False, default=False),  # of earlier releases: replies do not wait
    Column("request", Text, nullable=False),
)


class RunQueue:
    """Jobs of all servers that share a store.

    A thread's row is changed only under its thread lock, whose fencing token is `token`. The methods raise ThreadBusy
    if another server has locked the thread since.
    """

    def __init__(self, engine: Engine) -> None:
        """Create the tables if they are missing; blocks."""
        self._engine = engine
        make_tables(engine, metadata)

    @in_thread
    def add(self, owner: str, thread: str, token: str | None) -> None:
        """Add a thread; an earlier request to stop it is dropped."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            self.add_with(owner, 0, connection, thread)

    @staticmethod
    def add_with(owner: str, message: int, connection: Connection, thread: str) -> None:
        """Add a thread in the transaction that stores its next turn, and remove the message of this number."""
        connection.execute(delete(jobs).where(jobs.c.thread == thread))
        connection.execute(insert(jobs).values(thread=thread, owner=owner, stopping=False))
        connection.execute(delete(messages).where(messages.c.number == message))

    @in_thread
    def remove(self, thread: str, token: str | None) -> None:
        """Remove a thread whose job has ended."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))

    @in_thread
    def request_stop(self, thread: str) -> bool:
        """Ask the server that runs a thread to stop it; return False if it has no job."""
        with transaction(self._engine, write=True) as connection:
            return bool(connection.execute(update(jobs).where(jobs.c.thread == thread).values(stopping=True)).rowcount)

    @in_thread
    def requested_stops(self) -> list[str]:
        """Return the threads that a server was asked to stop."""
        with transaction(self._engine) as connection:
            return [*connection.scalars(select(jobs.c.thread).where(jobs.c.stopping))]

    @in_thread
    def contains(self, thread: str) -> bool:
        """Return whether a thread has a job."""
        with transaction(self._engine) as connection:
            return connection.scalar(select(jobs.c.owner).where(jobs.c.thread == thread)) is not None

    @in_thread
    def pending(self) -> list[tuple[str, str, bool]]:
        """Return the threads with a job or a message, with their owners, and whether they have a job."""
        with transaction(self._engine) as connection:
            threads = {row.thread: (row.owner, False) for row in connection.execute(select(messages))}
            threads |= {row.thread: (row.owner, True) for row in connection.execute(select(jobs))}
        return [(thread, owner, has_job) for thread, (owner, has_job) in threads.items()]

    @in_thread
    def add_message(self, owner: str, request: RunRequest) -> None:
        """Add the next message of a chat; raise ThreadBusy if too many wait for their turns."""
        waiting = select(messages.c.number).where(messages.c.thread == request.thread)
        row = {"thread": request.thread, "owner": owner, "request": request.model_dump_json()}
        with transaction(self._engine, write=True) as connection:
            if len(connection.execute(waiting).all()) >= MAX_MESSAGES:
                raise ThreadBusy(f"{MAX_MESSAGES} messages of this chat are waiting: wait for an answer, or stop it.")
            connection.execute(insert(messages).values(row))

    @in_thread
    def messages(self, thread: str) -> dict[int, RunRequest]:
        """Return the messages of a chat by number, in their order."""
        query = select(messages).where(messages.c.thread == thread).order_by(messages.c.number)
        with transaction(self._engine) as connection:
            rows = connection.execute(query).all()
        return {row.number: RunRequest.model_validate_json(row.request) for row in rows}

    @in_thread
    def remove_messages(self, thread: str) -> None:
        """Remove the messages of a chat that is deleted."""
        with transaction(self._engine, write=True) as connection:
            connection.execute(delete(messages).where(messages.c.thread == thread))


@dataclass(eq=False, kw_only=True)
class _Job:
    """A running job.

    `stopping`: cancellation was requested. `finishing`: only the final event remains to be published. `started`: a
    future that is done when the job owns its thread, or could not get it. `is_recovered`: an earlier server started the
    run. `began`: its monotonic time. `control`: interrupts the run between two steps. `last_event`: the number of the
    last event before the job. `after`: that of the event before the run. `runs`: those of the owner, for reading.
    `last_message`: the number of the last queued message that a stop of the chat includes.
    """

    owner: str
    thread: str
    budget: Budget | None
    is_recovered: bool
    began: float = field(default_factory=monotonic)
    stopping: bool = False
    finishing: bool = False
    token: str | None = None
    control: RunControl = field(default_factory=RunControl)
    started: asyncio.Future[None] = field(default_factory=asyncio.Future)
    runs: RunService = field(init=False)
    last_event: int = field(init=False)
    after: int = 0
    last_message: float = math.inf
    task: asyncio.Task[None] = field(init=False)

    def cancel(self) -> None:
        """Cancel the task, once: a second cancellation would interrupt the handling of the first."""
        if not self.stopping:
            self.stopping = True
            self.task.cancel()


class RunWorker:
    """Starts, follows and stops background runs."""

    def __init__(self, *, tenants: Tenants, log: EventLog, quota: Quota, telemetry: Telemetry) -> None:
        """Create the table of the queue if it is missing; blocks."""
        self._tenants = tenants
        self._log = log
        self._home_lock = tenants.store.home.lock
        self._quota = quota
        self._telemetry = telemetry
        self.queue = RunQueue(tenants.store.engine)
        self.jobs: dict[str, _Job] = {}
        self.is_closing = False

    async def is_active(self, thread: str) -> bool:
        """Return whether a thread may publish further events, here or on another server; False during a shutdown."""
        if thread in self.jobs or self.is_closing:
            return thread in self.jobs
        return await self.queue.contains(thread) or bool(await self.queue.messages(thread))

    async def is_running(self, thread: str) -> bool:
        """Return whether a thread is running, and is neither being stopped nor publishing its last event."""
        if job := self.jobs.get(thread):
            return not (job.stopping or job.finishing)
        return await self.queue.contains(thread)

    def require_open(self) -> None:
        """Raise StoreBusy if the server is shutting down: another one can start the run."""
        if self.is_closing:
            raise StoreBusy("The server is shutting down. Send the request again.")

    async def require_idle(self, thread: str) -> None:
        """Raise ThreadBusy if the thread is running, here or elsewhere; wait for a run that is just ending."""
        await self._require_idle_here(thread)
        async with self._tenants.store.locks.hold(thread):
            pass

    async def _require_idle_here(self, thread: str) -> None:
        while job := self.jobs.get(thread):
            if job.stopping or job.finishing:
                await asyncio.wait([job.task])
                continue
            raise ThreadBusy(f"Thread {thread} is running: wait until it ends, or stop it first.")

    def runs(self, owner: str, *, message: int = 0) -> RunService:
        """Return an owner's runs; one that is queued gets its job, and the queued message is removed, with it."""
        return self._tenants.read_only_runs(owner, partial(self.queue.add_with, owner, message))

    async def begin(self, owner: str, thread: str, *, budget: Budget | None = None) -> None:
        """Start a thread whose job or message is stored; if that is not possible now, a look at the queue starts it."""
        with suppress(RunError):  # the look was faster, a turn is running, or the server is shutting down
            await self.start(owner, thread, budget=budget)

    async def start(self, owner: str, thread: str, *, budget: Budget | None = None, is_recovered: bool = False) -> None:
        """Start or resume a thread in the background.

        Args:
            owner: the owner of the thread.
            thread: the id of the thread.
            budget: replaces the budget of the run.
            is_recovered: an earlier server started the run; start it only if it is still in the queue.

        Raises:
            ThreadBusy: it is running already, here or elsewhere.
            RunError: the server is shutting down.
        """
        await self._require_idle_here(thread)
        job = _Job(owner=owner, thread=thread, budget=budget, is_recovered=is_recovered)
        self.jobs[thread] = job
        job.task = asyncio.create_task(self._execute(job))
        await asyncio.shield(job.started)

    async def stop(self, thread: str) -> None:
        """Cancel a run, here or on another server, and wait for its end; it can be resumed.

        The messages that wait in a chat become turns that were stopped, too.

        Raises:
            ThreadBusy: it is not running.
        """
        last_message = max(await self.queue.messages(thread), default=0)  # one that is sent later is answered
        while True:
            if last_message and thread not in self.jobs:
                await self.recover()  # the next turn of the chat begins, to be stopped
            if (job := self.jobs.get(thread)) is None:
                await self._stop_elsewhere(thread)
                return
            await asyncio.wait([job.started])
            if not job.finishing:
                break
            await asyncio.wait([job.task])
        job.last_message = last_message
        job.cancel()
        await asyncio.wait([job.task])

    async def _stop_elsewhere(self, thread: str) -> None:
        if not await self.queue.request_stop(thread):
            raise ThreadBusy(f"Thread {thread} is not running.")
        end = self._log.follow(thread, _LAST_EVENT, is_active=partial(self.is_active, thread))
        with suppress(TimeoutError):
            async with aclosing(end), asyncio.timeout(STOP_WAIT):
                async for _ in end:
                    pass

    def cancel_nowait(self, thread: str, *, after: int | None = None) -> None:
        """Cancel a run without waiting for its end; do nothing if it has ended.

        With `after`, only cancel the run whose events follow this one: an earlier run of the thread has ended.
        """
        if (job := self.jobs.get(thread)) and not job.finishing and after in (None, job.after):
            job.cancel()

    async def close(self) -> None:
        """Interrupt all runs after their present steps and end their streams; the next start resumes them."""
        self.is_closing = True
        self._log.notify_all()
        jobs = [*self.jobs.values()]
        if not jobs:
            return
        about = {"runs": len(jobs), "seconds": DRAIN_WAIT}
        _log.info("the server ends after the steps in progress", extra={"about": about})
        for job in jobs:
            job.control.request_drain()
        await asyncio.wait([job.task for job in jobs], timeout=DRAIN_WAIT)
        for job in self.jobs.values():
            if job.started.done() and not job.stopping:  # the others end by themselves, and stay in the queue
                job.task.cancel()
        await asyncio.wait([job.task for job in jobs])

    async def watch(self) -> None:
        """Follow what other servers store, until cancelled: new events, requests to stop runs, and runs left over."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                pending = {thread for thread, *_ in await self.queue.pending()}
                await self._log.look(active=pending | self.jobs.keys())
                for thread in await self.queue.requested_stops() if self.jobs else ():
                    self.cancel_nowait(thread)
                await self.recover()
            except Exception as error:  # noqa: BLE001 - the server continues without them
                is_expected = is_database_error(error) or isinstance(error, SleuthError)
                unexpected = None if is_expected else error
                _log.warning("the runs of other servers cannot be read: %s", error, exc_info=unexpected)

    async def recover(self) -> None:
        """Resume the runs in the queue that no server runs, and begin the turns of queued messages."""
        pending = [row for row in await self.queue.pending() if row[0] not in self.jobs]
        held = await self._tenants.store.locks.held([thread for thread, *_ in pending]) if pending else set()
        for thread, owner, has_job in pending:
            if thread in held or self.is_closing:
                continue
            try:
                await self.start(owner, thread, is_recovered=has_job)
            except SleuthError as error:
                if not isinstance(error, ThreadBusy):
                    _log.warning("a run of the queue cannot start", exc_info=error, extra={"about": {"thread": thread}})

    async def _execute(self, job: _Job) -> None:
        """Run one job, from locking its thread to its end."""
        try:
            with log_fields(thread=job.thread):
                async with self._tenants.store.locks.hold(job.thread):
                    await self._register(job)
                    job.started.set_result(None)
                    await self._run_to_end(job)
        except Exception as error:  # noqa: BLE001 - it is raised in `start`, or logged
            job.finishing = True
            if job.started.done():  # another process holds the thread now, and publishes its events
                _log.error("a run cannot continue here", exc_info=error, extra={"about": {"thread": job.thread}})
            else:
                job.started.set_exception(error)
        finally:
            job.started.cancel()  # so that nobody waits forever
            del self.jobs[job.thread]
            self._log.close(job.thread)

    async def _register(self, job: _Job) -> None:
        has_begun = await self.queue.contains(job.thread)
        if job.is_recovered and not has_begun:
            raise ThreadBusy(f"Thread {job.thread} was ended by another server.")
        job.runs = self._tenants.read_only_runs(job.owner)
        job.token = self._tenants.store.locks.token(job.thread)
        if not job.is_recovered and (has_begun or not await self._take_message(job)):  # a turn that has begun first
            await self.queue.add(job.owner, job.thread, job.token)
        job.last_event = await self._log.open(job.thread)
        job.after = max(await self._log.ends(job.thread), default=0)
        if self.is_closing:
            raise RunError("The server is shutting down. The run is resumed at its next start.")

    async def _take_message(self, job: _Job) -> bool:
        """Begin the turn of the thread's next message; return False if it has none."""
        for number, request in (await self.queue.messages(job.thread)).items():
            if number <= job.last_message:
                await branch_chat(await self.runs(job.owner, message=number).held(job.thread), request)
                return True
        return False

    async def _mark_stopped(self, job: _Job) -> None:
        """Store that a run was stopped, and the messages that wait: a person who stops a chat means all of it."""
        await job.runs.mark_stopped(job.thread)
        while await self._take_message(job):
            await job.runs.mark_stopped(job.thread)

    async def _run_to_end(self, job: _Job) -> None:
        """Run a job and publish its last event: an answer, an error or a stop."""
        try:
            if job.is_recovered and job.thread in await self.queue.requested_stops():
                job.cancel()
            await self._run(job)
        except GraphDrained:
            return
        except asyncio.CancelledError:
            if not job.stopping and self.is_closing:
                return
            if not job.stopping:  # the thread lock is lost
                raise
            await retry_until_stored(lambda: self._mark_stopped(job), f"The stop of run {job.thread}")
            await self._append(job, "stopped", {}, key=f"stopped {uuid4().hex}")
        except Exception as error:  # noqa: BLE001 - it is logged, and ends the run
            await self._fail(job, error)
        await retry_until_stored(lambda: self.queue.remove(job.thread, job.token), f"The end of run {job.thread}")

    async def _run(self, job: _Job) -> None:
        """Run a job with metrics and quota."""
        thread = await job.runs.store.threads.get(job.thread)
        method, model = thread.method, thread.options.model
        with self._telemetry.run(job.thread, method, job.owner) as record:
            try:
                if not job.is_recovered:  # a message may have waited while the turns before it used up the quota
                    await self._quota.require(job.owner)
                # a chat first stores the message, and a run that has ended only repeats its answer
                needs_model = runnable(method).needs_model and method != CHAT and thread.state != "done"
                await self._publish(job, record, needs_model=needs_model, model=model)
            except SleuthError as error:
                record.error = type(error).__name__
                raise
            except (asyncio.CancelledError, GraphDrained):
                record.outcome = "stopped" if job.stopping else "interrupted"
                raise
            finally:
                await asyncio.shield(self._quota.add(job.owner, record.tokens))

    async def _publish(self, job: _Job, record: RunRecord, *, needs_model: bool, model: str) -> None:
        """Run a job and publish its events."""
        answer: Answer | None = None
        async with self._home_lock.hold("search", wait=math.inf if job.is_recovered else REBUILD_WAIT):
            runs = await self._tenants.runs(job.owner, needs_model=needs_model, model=model)
            if job.last_event:  # a kill may have followed steps that are stored and not published
                for step in await replay_steps(runs, job.thread, known=await self._log.finished_tasks(job.thread)):
                    await self._publish_step(replace(step, state="started", update={}), job, record)
                    await self._publish_step(step, job, record)

            def wants_tokens() -> bool:
                return self._log.want_deltas(job.thread) or monotonic() < job.began + LISTENER_GRACE

            async with aclosing(
                runs.run_held(job.thread, budget=job.budget, wants_tokens=wants_tokens, control=job.control)
            ) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        job.finishing, answer = True, event
                    elif isinstance(event, Step):
                        await self._publish_step(event, job, record)
                    else:
                        self._log.publish_delta(job.thread, event)
        if answer:  # the state of the run is stored now
            record.outcome = "waiting" if answer.asks else "done"
            self._telemetry.answers.labels(answer.method, answer.status).inc()
            await self._append(job, "answer", answer.to_json(), key=f"answer {answer.checkpoint}")

    async def _publish_step(self, step: Step, job: _Job, record: RunRecord) -> None:
        data = asdict(step)
        if await self._append(job, "step", data, key=f"{data.pop('task')} {step.state}"):
            self._telemetry.step(step, record)
        if step.state == "finished":
            self._log.finish_step(job.thread, step)

    async def _fail(self, job: _Job, error: BaseException) -> None:
        job.finishing = True
        problem, kind = describe_failure(error)
        if not isinstance(error, SleuthError):
            _log.error("a run ended with an unexpected error", exc_info=error, extra={"about": {"thread": job.thread}})
            problem = f"{problem} The run can be resumed."
        if not isinstance(error, ThreadBusy | UnknownName):  # another process runs a sub-run of it, or it was deleted
            fail = partial(job.runs.store.threads.set_state, job.thread, "failed", at=now(), problem=problem)
            await retry_until_stored(fail, f"The error of run {job.thread}")
        await self._append(job, "error", {"message": problem, "type": kind}, key=f"error {uuid4().hex}")

    async def _append(self, job: _Job, name: str, data: dict[str, Any], *, key: str) -> bool:
        return await self._log.append(job.thread, name, data, key=key, token=job.token)
