"""Runs of an evaluation by the workers of a cluster that cannot work; tests/integration has one that can."""

from pathlib import Path

import pytest
from fake_ray import FakeRay, RayError

from sleuth.studio.evaluation import cluster
from sleuth.studio.evaluation.cluster import open_cluster
from sleuth.studio.evaluation.data import GoldQuestion, systems
from sleuth.studio.evaluation.runs import Job
from sleuth.studio.simulation import Simulation
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import Settings

JOB = Job(system=systems(["plain-rag"])[0], question=GoldQuestion(set="s", id="1", question="Who?"))


@pytest.mark.parametrize(
    ("ray", "reason"),
    [
        (FakeRay(), "A worker of the Ray cluster: SLEUTH_DATABASE_URL must start with"),
        (FakeRay(failure=RayError("the node is gone")), r"The Ray cluster failed: the node is gone\. Check"),
    ],
)
async def test_failure_of_the_cluster_or_a_worker_has_its_reason(
    tmp_path: Path, ray: FakeRay, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "connect", ray.connect)
    settings = Settings(home=tmp_path / "home", embedder="none", ray="there:1", database_url="mysql://there")
    async with open_cluster(settings, simulation=Simulation(), parts=()) as run:
        with pytest.raises(StoreError, match=reason):
            await run(JOB)
    assert len(ray.killed) == len(ray.actors)
