"""Runs that go on in the background, whoever asked for them: at most one job per thread.

Which threads have a job is written down, so that a start after a kill, or after a shutdown, picks them up. A job holds
its thread's lease from before that until all is told: of several servers one alone writes down anything about a thread.
"""

import asyncio
import logging
import math
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field, replace
from time import monotonic
from uuid import uuid4

from sleuth.graphs.core import Answer, Budget, Step
from sleuth.graphs.runs import RunService, now, replay_steps
from sleuth.studio.server.home_lock import Door
from sleuth.studio.server.locks_elsewhere import OtherThreadLocks
from sleuth.studio.server.middleware.rate_limit import Quota
from sleuth.studio.server.retry import until_stored
from sleuth.studio.server.runs.event_log import EventLog, Trail
from sleuth.studio.server.runs.queue import JobList
from sleuth.studio.server.schemas.errors import STORE_AWAY, kind_of
from sleuth.studio.server.telemetry import RunRecord, Telemetry
from sleuth.studio.server.tenants import Tenants
from sleuth.tools.errors import RunError, SleuthError, ThreadBusy, UnknownName
from sleuth.tools.storage import is_database_error

_log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that a run waits while another process reads documents in."""

EXPECTED = 10.0
"""Seconds in which a reader is taken to be there: whoever begins a run follows it right after."""


@dataclass(eq=False, kw_only=True)
class _Job:
    """A run under way; `stopped` once somebody has asked for its end, `ending` when all that is left is to say so.

    `begun` is done when it is sure that it goes on here, or why not; one that is `left` was begun by an earlier server.
    Until `awaited`, a monotonic clock reading, somebody may come to listen.
    """

    owner: str
    thread: str
    budget: Budget | None
    patience: float
    left: bool
    awaited: float
    stopped: bool = False
    ending: bool = False
    token: str | None = None
    begun: asyncio.Future[None] = field(default_factory=asyncio.Future)
    trail: Trail = field(init=False)
    task: asyncio.Task[None] = field(init=False)


class Jobs:
    """Begins, follows and stops runs."""

    def __init__(self, *, tenants: Tenants, log: EventLog, door: Door, quota: Quota, telemetry: Telemetry) -> None:
        """To be prepared before its use."""
        self._tenants = tenants
        self._log = log
        self._door = door
        self._quota = quota
        self._telemetry = telemetry
        self._list = JobList(tenants.store.engine)
        self._jobs: dict[str, _Job] = {}
        self._closing = False

    async def prepare(self) -> None:
        """Makes the table where it is missing."""
        await asyncio.to_thread(self._list.prepare)

    @property
    def active(self) -> int:
        """How many runs are under way."""
        return len(self._jobs)

    def is_active(self, thread: str) -> bool:
        """Whether a thread is being run here, and may tell something more."""
        return thread in self._jobs

    async def require_idle(self, thread: str) -> None:
        """Raises ThreadBusy while the thread is being run, here or elsewhere; waits for a run that is just ending."""
        await self._require_idle_here(thread)
        async with self._tenants.store.locks.hold(thread):
            pass

    async def _require_idle_here(self, thread: str) -> None:
        while job := self._jobs.get(thread):
            if job.stopped or job.ending:
                await asyncio.wait([job.task])
                continue
            raise ThreadBusy(f"Thread {thread} is running: wait until it ends, or stop it first.")

    async def begin(
        self,
        owner: str,
        thread: str,
        *,
        budget: Budget | None = None,
        patience: float = PATIENCE,
        heard: bool = True,
        left: bool = False,
    ) -> None:
        """Runs a thread of the owner's from wherever it stands; from here on it goes on whatever happens.

        Whether its replies may be `heard` while they are written: not by those who follow its steps alone. A run that
        an earlier server has `left` is begun only while it is still written down.

        Raises:
            ThreadBusy: it is running already, here or elsewhere.
            RunError: the server is shutting down.
        """
        await self._require_idle_here(thread)
        awaited = monotonic() + (EXPECTED if heard else 0)
        job = _Job(owner=owner, thread=thread, budget=budget, patience=patience, left=left, awaited=awaited)
        self._jobs[thread] = job
        job.task = asyncio.create_task(self._work(job))
        await asyncio.shield(job.begun)

    async def stop(self, thread: str) -> None:
        """Ends the work in flight; the run can be resumed.

        Raises:
            ThreadBusy: it is not running here.
        """
        job = self._jobs.get(thread)
        if job:
            await asyncio.wait([job.begun])
        if job and job.ending:  # its end is told already
            await asyncio.wait([job.task])
        if job is None or job.ending:
            raise ThreadBusy(f"Thread {thread} is not running here.")
        _stop(job)
        await asyncio.wait([job.task])

    def abandon(self, thread: str) -> None:
        """Like `stop`, for somebody who does not wait; a run that has ended is let be."""
        if (job := self._jobs.get(thread)) and not job.ending:
            _stop(job)

    async def close(self) -> None:
        """Interrupts all runs, to be picked up by the next start, and lets go of those who follow them."""
        self._closing = True
        jobs = [*self._jobs.values()]
        for job in jobs:
            if job.begun.done() and not job.stopped:  # the others are written down, and end by themselves
                job.task.cancel()
        if jobs:
            await asyncio.wait([job.task for job in jobs])

    async def pick_up(self) -> int:
        """Goes on with what the last server left and no other one works at; returns how many runs that are."""
        begun = 0
        for thread, owner in await asyncio.to_thread(self._list.left):
            with suppress(ThreadBusy):
                await self.begin(owner, thread, patience=math.inf, left=True)
                begun += 1
        return begun

    async def _work(self, job: _Job) -> None:
        """One run from taking its thread to its end."""
        try:
            async with self._tenants.store.locks.hold(job.thread):
                await self._enter(job)
                job.begun.set_result(None)
                await self._go_on(job)
        except Exception as error:  # noqa: BLE001 - it is told to who began it, or to the log
            job.ending = True
            if job.begun.done():  # the thread is another process' now, and what becomes of it is told there
                _log.error("a run does not go on here", exc_info=error, extra={"about": {"thread": job.thread}})
            else:
                job.begun.set_exception(error)
        finally:
            job.begun.cancel()  # nobody waits for ever
            del self._jobs[job.thread]
            self._log.ears.hush(job.thread)
            self._log.ears.ring(job.thread)

    async def _enter(self, job: _Job) -> None:
        if job.left and not await asyncio.to_thread(self._list.has, job.thread):
            raise ThreadBusy(f"Thread {job.thread} was ended by another server.")
        job.token = self._tenants.store.locks.token(job.thread)
        await asyncio.to_thread(self._list.write_down, job.owner, job.thread, job.token)
        job.trail = await self._log.trail(job.thread, token=job.token)
        if self._closing:
            raise RunError("The server is shutting down; the run goes on when it is back.")

    async def _go_on(self, job: _Job) -> None:
        """One run to its end, which is an event: an answer, an error, or a stop."""
        try:
            (ended,) = await asyncio.gather(self._run(job), return_exceptions=True)
            if isinstance(ended, BaseException):
                await self._fail(job, ended)
        except asyncio.CancelledError:
            if job.stopped:
                await until_stored(lambda: self._mark_stopped(job), f"The stop of run {job.thread}")
                job.trail.tell("stopped", {}, key=f"stopped {uuid4().hex}")
            elif not self._closing:  # the lease is lost
                raise
        await self._log.flush()
        if job.stopped or not self._closing:
            await until_stored(
                lambda: asyncio.to_thread(self._list.cross_out, job.thread, job.token), f"The end of run {job.thread}"
            )

    async def _run(self, job: _Job) -> None:
        """The run, watched and accounted for."""
        reading = await self._tenants.reading(job.owner)
        method = (await reading.store.threads.get(job.thread)).method
        with self._telemetry.run(job.thread, method, job.owner) as record:
            try:
                await self._tell(job, record)
            except SleuthError:
                record.outcome = "failed"
                raise
            except asyncio.CancelledError:
                record.outcome = "stopped" if job.stopped else "interrupted"
                raise
            finally:
                await asyncio.shield(self._quota.add(job.owner, record.tokens))

    async def _tell(self, job: _Job, record: RunRecord) -> None:
        async with self._door.open("shared", patience=job.patience):
            opened = await self._tenants.runs(job.owner)
            runs = RunService(
                replace(opened.store, locks=OtherThreadLocks(opened.store.locks, job.thread)), opened.services
            )
            if not job.trail.fresh:
                await self._tell_again(runs, job, record)
            run = runs.run(job.thread, budget=job.budget, listening=lambda: self._is_heard(job))
            async with aclosing(run) as happenings:
                async for each in happenings:
                    if isinstance(each, Answer):
                        job.ending = True
                        record.outcome = "waiting" if each.asks else "done"  # who asked for it may hang up now
                        job.trail.tell("answer", each.to_json(), key=f"answer {each.checkpoint}")
                    elif isinstance(each, Step):
                        self._tell_step(each, job, record)
                    else:
                        job.trail.say(each)

    def _is_heard(self, job: _Job) -> bool:
        return self._log.ears.listening(job.thread) or monotonic() < job.awaited

    async def _tell_again(self, runs: RunService, job: _Job, record: RunRecord) -> None:
        """What was done when the last server was killed, and not told any more."""
        for step in await replay_steps(runs, job.thread):
            self._tell_step(replace(step, state="started", update={}), job, record)
            self._tell_step(step, job, record)

    def _tell_step(self, step: Step, job: _Job, record: RunRecord) -> None:
        data = asdict(step)
        if job.trail.tell("step", data, key=f"{data.pop('task')} {step.state}"):
            self._telemetry.step(step, record)
        if step.state == "finished":
            self._log.ears.stands(job.thread, step)

    async def _fail(self, job: _Job, error: BaseException) -> None:
        job.ending = True
        about = {"about": {"thread": job.thread}}
        if isinstance(error, SleuthError):
            told, kind = str(error), kind_of(error)
        elif is_database_error(error):
            _log.error("a run ended since the store cannot be used", exc_info=error, extra=about)
            told, kind = f"{STORE_AWAY} The run can be resumed.", "store_error"
        else:
            _log.error("a run ended by a fault of ours", exc_info=error, extra=about)
            told, kind = "The server failed; its log says why. The run can be resumed.", "internal_error"
        if not isinstance(error, ThreadBusy | UnknownName):  # another process runs a hop of it, or it is gone
            await until_stored(lambda: self._mark_failed(job, told), f"What has ended run {job.thread}")
        job.trail.tell("error", {"message": told, "type": kind}, key=f"error {uuid4().hex}")

    async def _mark_failed(self, job: _Job, problem: str) -> None:
        runs = await self._tenants.reading(job.owner)
        await runs.store.threads.set_state(job.thread, "failed", at=now(), problem=problem)

    async def _mark_stopped(self, job: _Job) -> None:
        runs = await self._tenants.reading(job.owner)
        await runs.stopped(job.thread)


def _stop(job: _Job) -> None:
    """Cancel a run's task, once: a second cancellation would break off what the first one leads to."""
    if not job.stopped:
        job.stopped = True
        job.task.cancel()
