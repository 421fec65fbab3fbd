"""Ingest and evaluation on a real Ray cluster of two workers on this machine."""

from pathlib import Path

import pytest
from cli_process import sleuth
from ray_fixture import ray_cluster

pytestmark = pytest.mark.timeout(180)


@pytest.mark.faults
async def test_ingest_on_a_cluster_stores_what_an_ingest_here_stores(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for at in range(12):
        text = "Ada Lovelace met Charles Babbage in London. " * 300
        (folder / f"{at:02}.html").write_text(f"<title>Page {at}</title><p>{text} Number {at}.", encoding="utf-8")
    (folder / "empty.txt").touch()
    found = []
    with ray_cluster() as cluster:
        for options in [], ["--ray", cluster.address]:
            own = {"SLEUTH_HOME": str(tmp_path / str(len(found))), "SLEUTH_EMBEDDER": "none", **cluster.environment}
            done = await sleuth("ingest", str(folder), "--json", *options, **own)
            assert done.status == 0, done.err
            assert "ray" not in done.err.lower()
            hits = await sleuth("search", "Ada in London", "--mode", "keyword", "--json", "-k", "40", **own)
            found.append((done.json() | {"seconds": 0}, hits.json()))
    here, there = found
    assert there == here
    assert (here[0]["added"], here[0]["failed"]) == (12, 1)


async def test_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "a.txt").write_text("Of mills.")
    own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none"}
    done = await sleuth("ingest", str(tmp_path / "a.txt"), "--ray", "127.0.0.1:1", **own)
    assert done.status == 2
    assert "No Ray cluster answers at 127.0.0.1:1" in done.err and "Traceback" not in done.err
