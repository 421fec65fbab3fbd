"""Runs in SQLite and in Postgres: started, run, resumed, looked at, forked, leased."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import uuid4

import pytest
from four_hops import QUESTION, InProcess, Shelf
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from postgres_fixture import BOTH_STORES
from preloaded import child
from stored_runs import finished, interrupt, open_runs, own_settings, services

from sleuth.agents.llm.chat_models import ChatModels
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.runs.history import export_run, list_checkpoints
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.errors import RunError, ThreadBusy, UnknownName
from sleuth.tools.settings import Settings

pytestmark = BOTH_STORES


def without_place(answer: Answer) -> Answer:
    """An answer without its place in the store."""
    return replace(answer, thread="", checkpoint="")


@pytest.fixture
def stored(tmp_path: Path, database_url: str | None) -> Settings:
    """A store of its own: in Postgres an owner of its own."""
    return own_settings(tmp_path, database_url)


@pytest.fixture
async def runs(stored: Settings) -> AsyncIterator[RunService]:
    async with open_runs(stored) as opened:
        yield opened


async def test_finished_run_is_visible_to_the_next_process(runs: RunService, stored: Settings) -> None:
    id, answer = await finished(runs)
    assert (answer.status, answer.text, len(answer.notes)) == ("answered", "the fair at Brindlecote", 5)
    async with open_store(stored) as store:
        again = RunService(store)
        assert await again.answer(id) == answer
        assert await last_answer(again.run(id)) == answer, "a finished run needs no services"
        assert [(thread.id, thread.state) for thread in await store.threads.list_newest()] == [(id, "done")]
    async with open_store(stored.model_copy(update={"owner": uuid.uuid4().hex})) as store:
        assert await store.threads.list_newest() == []
        with pytest.raises(UnknownName):
            await list_checkpoints(RunService(store), id)


async def test_cancelled_run_resumes_from_its_last_checkpoint(runs: RunService, stored: Settings) -> None:
    _, uninterrupted = await finished(runs)
    stuck = InProcess(hold_at=6)
    id = await runs.start(RunRequest(question=QUESTION, method="par-rag"))
    await interrupt(runs, id, stuck, pause=0.3)
    assert (await runs.store.threads.get(id)).state == "interrupted"
    with pytest.raises(RunError, match=f"sleuth resume {id}"):
        await runs.answer(id)
    model = InProcess()
    async with open_store(stored) as store:
        answer = await last_answer(RunService(store, services(model)).run(id))
    assert without_place(answer) == without_place(uninterrupted)
    ids = {request.call_id for request in stuck.requests[:5]} & {request.call_id for request in model.requests}
    assert not ids, "calls that had completed were made again"
    assert len(stuck.requests) + len(model.requests) == uninterrupted.cost["calls"] + 1


async def test_two_processes_never_run_one_thread(runs: RunService, stored: Settings) -> None:
    id = await runs.start(RunRequest(question=QUESTION, method="par-rag"))
    with child(run_and_stay, (stored, id)) as (_, pipe):
        assert await asyncio.to_thread(pipe.poll, 60)
        with pytest.raises(ThreadBusy, match=f"Thread {id} is being run by "):
            await last_answer(runs.run(id))
    assert (await freed(runs, id)).status == "answered"


@pytest.mark.nightly
@pytest.mark.parametrize(("method", "values"), [("par-rag", {}), ("auto", {"order": "plain-rag,par-rag"})])
async def test_many_simultaneous_runs_end(runs: RunService, method: str, values: dict[str, str]) -> None:
    """More than a pool of connections has: none may be held for as long as a run takes."""
    names = [await runs.start(RunRequest(question=QUESTION, method=method, values=values)) for _ in range(20)]
    answers = await asyncio.gather(*(last_answer(runs.run(name)) for name in names))
    assert [answer.thread for answer in answers] == names
    assert {answer.status for answer in answers} == {"answered"}


async def freed(runs: RunService, id: str) -> Answer:
    """Runs a thread as soon as it can be: Postgres needs a moment to see that a client was killed."""
    for _ in range(50):
        try:
            return await last_answer(runs.run(id))
        except ThreadBusy:
            await asyncio.sleep(0.1)
    raise AssertionError("the lease of a killed process stays")


def run_and_stay(job: tuple[Settings, str], pipe: Connection) -> None:
    settings, id = job

    async def run() -> None:
        model = InProcess(hold_at=1)
        async with open_store(settings) as store:
            running = asyncio.create_task(last_answer(RunService(store, services(model)).run(id)))
            await model.holding.wait()
            pipe.send("held")
            await running

    asyncio.run(run())


async def test_run_with_longest_name_has_subruns(runs: RunService) -> None:
    name = "n" * LONGEST_NAME
    answer = await last_answer(runs.run(await runs.start(RunRequest(question=QUESTION, method="auto", thread=name))))
    hops = await runs.store.threads.subruns_of(name)
    assert answer.thread == name
    assert hops
    assert all(len(hop.id) <= LONGEST_NAME and hop.part_of == name for hop in hops)
    assert len({hop.id for hop in hops}) == len(hops)


ODD = "\x00the fair of\ud800 Brindlecote"


@pytest.mark.parametrize(
    ("method", "reply"),
    [("search-trained", f"<answer>{ODD}</answer>"), ("closed-book", json.dumps({"answer": ODD, "known": True}))],
    ids=["text", "JSON"],
)
async def test_reply_with_odd_letters_is_stored_and_read(
    tmp_path: Path, database_url: str | None, method: str, reply: str
) -> None:
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    model = ChatModels({"default": FakeListChatModel(responses=[reply])}, concurrency=1, seconds=60)
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        id = await runs.start(RunRequest(question=QUESTION, method=method))
        answer = await last_answer(runs.run(id))
        assert answer.text == "the fair of\ufffd Brindlecote"
        assert await runs.answer(id) == answer
        kept = json.dumps(await export_run(runs, id), ensure_ascii=False, default=str).encode()
    assert b"Brindlecote" in kept
    assert b"\\u0000" not in kept


async def test_run_savers_conform(tmp_path: Path, database_url: str | None) -> None:
    """LangGraph's own suite."""
    conformance = pytest.importorskip(
        "langgraph.checkpoint.conformance", reason="run `make setup`: the suite is new in it"
    )

    @conformance.checkpointer_test(name=f"runs {uuid4().hex}")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str]]:
        settings = Settings(home=tmp_path / uuid4().hex, database_url=database_url)
        async with open_store(settings) as store:
            yield store.saver

    report = await conformance.validate(saver)
    assert report.passed_all_base(), report.to_dict()
