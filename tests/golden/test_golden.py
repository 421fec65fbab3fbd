"""Homes of releases: a run left half-way is shown and resumed; documents are searched and changed."""

import sqlite3
from pathlib import Path

import pytest
from hashing_embedder import HashingEmbedder
from make import AFTER, FOLDER, QUESTION, TEXTS, THREAD, Shelf, corpus, unpack
from scripted_model import ScriptedModel

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import export_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.tools.collection.collection import Collection
from sleuth.tools.ingestion.ingestion import Ingestion, ingest
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings

MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")
RELEASES = sorted(path.name for path in FOLDER.glob("home-*.zip"))


def test_golden_store_of_the_first_release_exists() -> None:
    assert "home-0.1.0.zip" in RELEASES


@pytest.fixture(params=RELEASES)
def home(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    return unpack(request.param, settings)


async def test_old_run_resumes_where_it_stopped(home: Settings) -> None:
    model = ScriptedModel(AFTER)
    async with open_store(home) as store:
        runs = RunService(store, Services(model=model, retriever=Shelf()))
        thread = await store.threads.get(THREAD)
        assert (thread.question, thread.state, thread.problem) == (QUESTION, "failed", "The model server is down.")
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


async def found(library: Collection, text: str) -> dict[Mode, list[str]]:
    """The first document for a text, in every mode."""
    hits = {mode: await library.search(Query(text=text, k=1, mode=mode)) for mode in MODES}
    return {mode: [hit.passage.document_id for hit in each] for mode, each in hits.items()}


async def test_golden_documents_are_found_without_embedding(home: Settings) -> None:
    embedder = HashingEmbedder()
    async with await Collection.open(home, embedder=embedder) as library:
        for name, text in TEXTS.items():
            assert await found(library, f"{name.title()}. {text}") == {mode: [name] for mode in MODES}
    assert embedder.embedded == []


async def test_golden_documents_are_changed_and_deleted(home: Settings, tmp_path: Path) -> None:
    new = "The dredger Old Thessaly was broken up at Pendrannock."
    report = await ingest([corpus(tmp_path, {**TEXTS, "ferry": new})], settings=home, embedder=HashingEmbedder())
    assert (report.added, report.updated + report.unchanged, report.failed, report.passages) == (0, 2, 0, 1)
    async with await Collection.open(home, embedder=HashingEmbedder()) as library:
        assert await found(library, f"Ferry. {new}") == {mode: ["ferry"] for mode in MODES}
        await Ingestion(library).delete(["ferry"])
        assert [document.id for document in await library.documents()] == ["yard"]
        assert ["ferry"] not in (await found(library, f"Ferry. {new}")).values()
