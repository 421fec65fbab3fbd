"""A run that an older release left half-way is shown and resumed by this one."""

import shutil
import sqlite3
from pathlib import Path
from zipfile import ZipFile

import pytest
from make import AFTER, QUESTION, TEXTS, THREAD, Shelf
from scripted_model import ScriptedModel

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import export_run, list_checkpoints
from sleuth.graphs.runs.service import RunService, Services
from sleuth.tools.settings import Settings

FOLDER = Path(__file__).parent
RELEASES = sorted(path.name for path in [*FOLDER.glob("v*.db"), *FOLDER.glob("home-*.zip")])


def test_golden_store_of_the_first_release_exists() -> None:
    assert {"v1.db", "home-1.zip"} <= set(RELEASES)


@pytest.fixture(params=RELEASES)
def home(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    settings.home.mkdir()
    if request.param.endswith(".zip"):
        with ZipFile(FOLDER / request.param) as file:
            file.extractall(settings.home)
    else:
        shutil.copyfile(FOLDER / request.param, settings.home / "runs.sqlite")
    return settings


async def test_old_run_resumes_where_it_stopped(home: Settings) -> None:
    model = ScriptedModel(AFTER)
    async with open_store(home) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        thread = await store.threads.get(THREAD)
        assert (thread.question, thread.status, thread.problem) == (QUESTION, "failed", "The model server is down.")
        *_, answer = [event async for event in runs.run(THREAD)]
    model.done()
    assert isinstance(answer, Answer)
    assert (answer.status, answer.text) == ("answered", "1868")
    assert [citation["quote"] for citation in answer.citations] == ["built by Trevandle & Ruske", "founded in 1868"]
    assert answer.cost["calls"] == 7


async def test_old_run_can_be_read_and_forked(home: Settings) -> None:
    async with open_store(home) as store:
        moments = await list_checkpoints(RunService(store), THREAD)
        exported = await export_run(RunService(store), THREAD)
    assert (moments[0].node, moments[0].next) == (["review"], ["refine"])
    assert all(any(text in kept for kept in exported["texts"].values()) for text in TEXTS.values())


def test_stored_state_is_plain_json(home: Settings) -> None:
    connection = sqlite3.connect(home.home / "runs.sqlite")
    types = {kind for (kind,) in connection.execute("SELECT type FROM checkpoints UNION SELECT type FROM writes")}
    bodies = b"".join(body for (body,) in connection.execute("SELECT checkpoint FROM checkpoints"))
    connection.close()
    assert types <= {"msgpack", "null", "empty"}
    assert b"sleuth." not in bodies
