"""Runs of an evaluation by the workers of a cluster: the results are those of one process."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from fake_ray import FakeRay, RayError

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.store import open_store
from sleuth.studio.evaluation.cluster import open_cluster
from sleuth.studio.evaluation.data import GoldQuestion, systems
from sleuth.studio.evaluation.gold import KnownGold
from sleuth.studio.evaluation.models import EvaluationBudget, open_models
from sleuth.studio.evaluation.results import Result
from sleuth.studio.evaluation.runs import Job, JobRunner, make_jobs
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings

SIMULATION = Simulation.parse("answerer=0.5,aggregator=0.5", seed=1)
TEXTS = {f"bridge{at}": (f"Bridge {at}", f"The Hollin Bridge {at} was designed by Ilse {at}.") for at in range(5)}


@pytest.fixture
async def place(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", embedder="none")
    async with await Collection.open(settings) as library:
        await library.put([entry(id, text, title=title) for id, (title, text) in TEXTS.items()])
    return settings


def jobs(evaluation: str = "") -> list[Job]:
    questions = [
        GoldQuestion(
            set="s",
            id=str(at),
            question=f"Who designed the Hollin Bridge {at}?",
            answers=(f"Ilse {at}",),
            gold=(f"bridge{at}",),
            row={
                "question": f"Who designed the Hollin Bridge {at}?",
                "answer": f"Ilse {at}",
                "gold_ids": [f"bridge{at}"],
            },
        )
        for at in range(5)
    ]
    return make_jobs(systems(["plain-rag", "par-rag"], values={"mode": "keyword"}), questions, evaluation)


def cluster(settings: Settings, ray: FakeRay) -> AbstractAsyncContextManager[Callable[[Job], Awaitable[Result]]]:
    settings = settings.model_copy(update={"ray": "there:1"})
    return open_cluster(settings, simulation=SIMULATION, gold=(), texts=TEXTS, connect=ray.connect)


def without_times(result: Any) -> dict[str, Any]:
    cost = {name: result["cost"][name] for name in ("calls", "prompt_tokens", "completion_tokens")}
    scores = {name: score for name, score in result["scores"].items() if not name.endswith("seconds")}
    return {
        **result,
        "cost": cost,
        "scores": scores,
        "seconds": None,
        "thread": result["thread"].removeprefix("eval-1."),
    }


@pytest.mark.nightly
async def test_workers_give_the_results_of_one_process(place: Settings) -> None:
    ray = FakeRay(processors=3)
    async with cluster(place, ray) as run:
        there = await asyncio.gather(*map(run, jobs("eval-1.")))
    assert (len(ray.actors), len(ray.killed)) == (3, 3)
    known, budget = KnownGold(TEXTS), EvaluationBudget(limits=Budget())
    async with (
        await Collection.open(place) as library,
        open_models(place, library, known, budget, simulation=SIMULATION, gold=()) as models,
        open_store(place) as store,
    ):
        runner = JobRunner(store=store, services_for=models.services_for, known=known, simulated=True)
        here = [await runner.run(job) for job in jobs()]
    for one, other in zip(there, here, strict=True):
        assert without_times(one) == without_times(other)
    assert len({result["scores"]["em"] for result in here}) == 2
    for worker in ray.actors:
        await worker._opened.aclose()


async def test_worker_that_cannot_open_the_store_is_an_error_with_the_reason(place: Settings) -> None:
    broken = place.model_copy(update={"database_url": "mysql://there"})
    async with cluster(broken, FakeRay()) as run:
        with pytest.raises(StoreError, match="A worker of the Ray cluster: SLEUTH_DATABASE_URL must start with"):
            await run(jobs()[0])


async def test_failed_cluster_names_what_to_check(place: Settings) -> None:
    ray = FakeRay(failure=RayError("the node is gone"))
    async with cluster(place, ray) as run:
        with pytest.raises(StoreError, match=r"The Ray cluster failed: the node is gone\. Check"):
            await run(jobs()[0])
    assert len(ray.killed) == 2
