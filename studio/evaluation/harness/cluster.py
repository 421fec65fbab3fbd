"""Runs of an evaluation on a Ray cluster: an actor for each processor, with its own collection and models.

All runs are in one Postgres. The actor of a killed worker is started again and repeats its jobs, whose runs resume.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, cast

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import open_store
from sleuth.studio.evaluation.gold import KnownGold, OracleParts
from sleuth.studio.evaluation.harness.runs import Job, JobRunner
from sleuth.studio.evaluation.models import EvaluationBudget, open_models
from sleuth.studio.evaluation.results import Result
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.collection.ray_cluster import RETRIES, Connect, cluster_failed, connect, processors
from sleuth.tools.errors import ModelUnavailable, SleuthError, StoreError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold


@dataclass(frozen=True, kw_only=True)
class WorkerPlan:
    """The data that a worker needs to run jobs; `texts` are those of the gold by id."""

    settings: Settings
    simulation: Simulation | None
    gold: OracleParts
    texts: Mapping[str, tuple[str, str]]


class RunWorker:
    """Runs jobs on a worker, which opens the collection and the models with its first job."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
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
        plan, enter = self._plan, self._opened.enter_async_context
        settings, known = plan.settings.model_copy(update={"ray": None}), KnownGold(plan.texts)
        await enter(hold(settings.home, "shared", command="sleuth eval", wait=settings.wait))
        collection = await enter(await Collection.open(settings))
        budget = EvaluationBudget(limits=Budget())
        models = await enter(
            open_models(settings, collection, known, budget, simulation=plan.simulation, gold=plan.gold)
        )
        store = await enter(open_store(settings.model_copy(update={"runs": None})))
        simulated = plan.simulation is not None
        return JobRunner(store=store, services_for=models.services_for, known=known, simulated=simulated)


@asynccontextmanager
async def open_cluster(
    address: str, plan: WorkerPlan, *, connect: Connect = connect
) -> AsyncIterator[Callable[[Job], Awaitable[Result]]]:
    """Start a worker for each processor of the cluster, and yield the function that runs a job on the next one.

    Raises:
        UsageError: Ray is not installed, or no cluster answers.
    """
    ray = await asyncio.to_thread(connect, address)
    actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=RETRIES)(RunWorker)
    workers = [actor.remote(plan) for _ in range(processors(ray))]
    turns = cycle(workers)

    async def run(job: Job) -> Result:
        try:
            found: dict[str, Any] = await next(turns).run.remote(job)
        except ray.exceptions.RayError as error:
            raise cluster_failed(error) from error
        if "failure" not in found:
            return cast("Result", found)
        kind = ModelUnavailable if found["failure"] == "model" else StoreError
        raise kind(f"A worker of the Ray cluster: {found['reason']}")

    try:
        yield run
    finally:
        for worker in workers:
            ray.kill(worker)
