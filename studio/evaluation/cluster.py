"""Runs of an evaluation on a Ray cluster: an actor for each processor, with its own collection and models.

All runs are in one Postgres. The actor of a killed worker is started again and repeats its jobs, whose runs resume.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle

from sleuth.graphs.core.context import Budget
from sleuth.studio.evaluation.models import EvaluationBudget
from sleuth.studio.evaluation.results import Result
from sleuth.studio.evaluation.runs import Job, JobRunner, open_runner
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelUnavailable, SleuthError, StoreError
from sleuth.tools.ingestion.ray_cluster import RETRIES, cluster_failed, connect, processors
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold


class EvaluationWorker:
    """Runs jobs on a worker, which opens the collection and the models with its first job."""

    def __init__(self, settings: Settings, simulation: Simulation | None, parts: Sequence[str]) -> None:
        self._settings = settings.model_copy(update={"ray": None, "runs": None})
        self._simulation = simulation
        self._parts = parts
        self._opened = AsyncExitStack()
        self._opening: asyncio.Task[JobRunner] | None = None

    async def run(self, job: Job) -> Result | dict[str, str]:
        """Run a job; return its result, or a failure that concerns all jobs as `{"failure": KIND, "reason": TEXT}`."""
        try:
            if self._opening is None:
                self._opening = asyncio.create_task(self._open())
            return await (await asyncio.shield(self._opening)).run(job)
        except ModelUnavailable as error:
            return {"failure": "model", "reason": str(error)}
        except SleuthError as error:
            return {"failure": "worker", "reason": str(error)}

    async def _open(self) -> JobRunner:
        settings, enter = self._settings, self._opened.enter_async_context
        await enter(hold(settings.home, "shared", command="sleuth eval", wait=settings.wait))
        collection, budget = await enter(await Collection.open(settings)), EvaluationBudget(limits=Budget())
        return await enter(open_runner(settings, collection, budget, simulation=self._simulation, parts=self._parts))


@asynccontextmanager
async def open_cluster(
    settings: Settings, *, simulation: Simulation | None, parts: Sequence[str]
) -> AsyncIterator[Callable[[Job], Awaitable[Result]]]:
    """Start a worker for each processor of the settings' cluster, and yield the function that runs a job on the next.

    Args:
        settings: of this process; those of the workers are the same.
        simulation: as for `open_runner`.
        parts: as for `open_runner`.

    Raises:
        UsageError: Ray is not installed, or no cluster answers.
    """
    assert settings.ray
    ray = await asyncio.to_thread(connect, settings.ray)
    actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=RETRIES)(EvaluationWorker)
    workers = [actor.remote(settings, simulation, parts) for _ in range(processors(ray))]
    turns = cycle(workers)

    async def run(job: Job) -> Result:
        try:
            found: Result | dict[str, str] = await next(turns).run.remote(job)
        except ray.exceptions.RayError as error:
            raise cluster_failed(error) from error
        if isinstance(found, Result):
            return found
        kind = ModelUnavailable if found["failure"] == "model" else StoreError
        raise kind(f"A worker of the Ray cluster: {found['reason']}")

    try:
        yield run
    finally:
        for worker in workers:
            ray.kill(worker)
