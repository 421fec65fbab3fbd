"""A whole SLEUTH_HOME that an older release left is opened, searched and changed by this one."""

from pathlib import Path
from zipfile import ZipFile

import pytest
from hashing_embedder import HashingEmbedder
from make import TEXTS, corpus

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.settings import Settings

HOMES = sorted((Path(__file__).parent).glob("home-*.zip"), key=str)
MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")


@pytest.fixture(params=HOMES, ids=lambda path: path.stem)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    with ZipFile(request.param) as file:
        file.extractall(tmp_path / "home")
    return Settings(home=tmp_path / "home", embedder="hashing")


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
        await library.delete(["ferry"])
        assert [document.id for document in await library.documents()] == ["yard"]
        assert ["ferry"] not in (await found(library, f"Ferry. {new}")).values()
