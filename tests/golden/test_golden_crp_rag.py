"""CRP-RAG runs of a release whose nodes were `plan` and `answer` are shown, forked and resumed by this one."""

import sqlite3
from pathlib import Path
from zipfile import ZipFile

import pytest
from make import QUESTION, Shelf
from make_crp_rag import STOPPED, replies
from scenes import finish

from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.history import fork_run, list_checkpoints, replay_steps
from sleuth.graphs.runs.service import RunService, Services
from sleuth.tools.settings import Settings

LAYER, KNOW = ["expand", "merge"], ["retrieve", "aggregate", "verify"]
ANSWER = ["select_paths", "reason", "integrate"]
DONE = ["plan", "plan", *KNOW, "answer"]

RESUMED = {
    "first-plan": ["plan", "try_shortcut", *LAYER, *LAYER, *KNOW, *ANSWER],
    "second-plan": ["plan", "plan", *LAYER, *KNOW, *ANSWER],
    "plan-after-shortcut": ["plan", *KNOW, "plan", *LAYER, *LAYER, *KNOW, *ANSWER],
    "answer": [*DONE, *ANSWER],
    "answer-of-shortcut": ["plan", *KNOW, "answer", *ANSWER],
}
"""All nodes of each run: those of the old release, the one at which it was stopped, and those of this release."""


@pytest.fixture
def home(settings: Settings) -> Settings:
    with ZipFile(Path(__file__).parent / "crp-rag-1.zip") as file:
        file.extractall(settings.home)
    return settings


def service(store: Store, run: str) -> RunService:
    return RunService(store, Services(model=replies(run, failing=False), retriever=Shelf()))


async def visited(runs: RunService, run: str) -> list[str]:
    return [step.node for step in await replay_steps(runs, run)]


def test_every_stopped_run_is_resumed_by_a_test() -> None:
    assert {*RESUMED, "done"} == STOPPED.keys()


@pytest.mark.parametrize("run", RESUMED)
async def test_run_stopped_at_a_former_node_resumes(home: Settings, run: str) -> None:
    async with open_store(home) as store:
        runs = service(store, run)
        answer = await finish(runs, run)
        assert (answer.status, answer.text) == ("answered", "1868")
        assert answer.citations[-1]["quote"] == "1868"
        assert await visited(runs, run) == RESUMED[run]


async def test_former_nodes_of_a_finished_run_are_shown(home: Settings) -> None:
    async with open_store(home) as store:
        runs = service(store, "done")
        moments = [(moment.node, moment.next) for moment in reversed(await list_checkpoints(runs, "done"))]
        assert await visited(runs, "done") == DONE
        assert (await finish(runs, "done")).cost["nodes"].keys() == {"plan", "aggregate", "verify", "answer"}
    assert moments[1:] == [
        ([], ["plan"]),
        *(([a], [b] if b else []) for a, b in zip(DONE, [*DONE[1:], ""], strict=True)),
    ]


@pytest.mark.parametrize("at", range(1, 8))
async def test_checkpoint_with_former_nodes_can_be_forked(home: Settings, at: int) -> None:
    async with open_store(home) as store:
        runs = service(store, "done")
        moments = [*reversed(await list_checkpoints(runs, "done"))]
        assert moments[0].next == ["__start__"]
        await fork_run(runs, "done", at=moments[at].checkpoint, changes={"notes": {}})
        answer = await finish(runs, "done")
        assert (answer.status, answer.text, answer.question) == ("answered", "1868", QUESTION)
        assert (await visited(runs, "done"))[: at - 1] == DONE[: at - 1]


@pytest.mark.parametrize("killed_after", range(1, 7))
async def test_run_killed_before_the_checkpoint_of_a_former_node_resumes(home: Settings, killed_after: int) -> None:
    connection = sqlite3.connect(home.home / "runs.sqlite")
    with connection:
        ids = connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = 'done' ORDER BY checkpoint_id"
        )
        later = [id for (id,) in ids][killed_after + 1 :]
        for table in ("checkpoints", "writes"):
            connection.executemany(f"DELETE FROM {table} WHERE checkpoint_id = ?", [(id,) for id in later])
    connection.close()
    async with open_store(home) as store:
        runs = service(store, "done")
        answer = await finish(runs, "done")
        assert (answer.status, answer.text) == ("answered", "1868")
        assert (await visited(runs, "done"))[:killed_after] == DONE[:killed_after]
