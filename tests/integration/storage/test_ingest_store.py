import asyncio
import json
import random
import re
import time
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path

from hashing_embedder import HashingEmbedder
from index_contents import held
from preloaded import child

from sleuth.tools.collection.collection import Collection
from sleuth.tools.collection.index_set import ALL, IndexSet
from sleuth.tools.ingestion.ingestion import Ingestion, IngestProgress, IngestReport, ingest
from sleuth.tools.search.retriever import Mode, Query
from sleuth.tools.search.vectors.chroma_index import ChromaIndex
from sleuth.tools.search.vectors.embedder import Embedder, NoEmbedder, Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine

MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def line(n: int, word: str = "text") -> str:
    """Shares some words with the other lines and has a few of its own."""
    own = " ".join(re.findall("....", sha256(f"{word} {n}".encode()).hexdigest()))
    return f"The {word} number {n} of many: {own}."


def corpus(path: Path, lines: int, *, word: str = "text") -> Path:
    rows = ({"id": f"p{n}", "title": f"Title {n}", "text": line(n, word)} for n in range(lines))
    return write(path, "\n".join(json.dumps(row) for row in rows))


async def run(settings: Settings, *paths: Path, embedder: Embedder | None = None) -> IngestReport:
    return await ingest(list(paths), settings=settings, embedder=embedder or HashingEmbedder())


async def test_ingested_files_are_found_in_each_mode(settings: Settings, tmp_path: Path) -> None:
    write(tmp_path / "docs" / "bridge.md", "# Stone bridge\n\nMasons built the stone bridge.")
    seen: list[IngestProgress] = []
    report = await ingest(
        [tmp_path / "docs", corpus(tmp_path / "c.jsonl", 600)],
        settings=settings,
        on_progress=seen.append,
        embedder=HashingEmbedder(),
    )
    assert (report.added, report.passages, report.failed, report.warnings) == (601, 601, 0, [])
    assert (seen[-1].stored, seen[-1].embedded, seen[-1].total) == (601, 601, 2)
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        for mode in MODES:
            hits = await library.search(Query(text="stone bridge masons", k=3, mode=mode))
            assert hits[0].passage.document_id == "bridge.md"
            assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    embedder = HashingEmbedder()
    report = await run(settings, tmp_path / "docs", tmp_path / "c.jsonl", embedder=embedder)
    assert (report.added, report.unchanged, embedder.embedded) == (0, 601, [])


async def test_vectors_follow_deletions_without_an_embedder(settings: Settings, tmp_path: Path) -> None:
    source, nobody = corpus(tmp_path / "c.jsonl", 20), NoEmbedder()
    report = await run(settings, source, embedder=nobody)
    assert (report.added, report.warnings) == (20, [])
    assert not (settings.home / "chroma").exists()
    embedder = HashingEmbedder()
    report = await run(settings, source, embedder=embedder)
    assert (report.unchanged, report.warnings, len(embedder.embedded)) == (20, [], 20)
    async with await Collection.open(settings, embedder=nobody) as library:
        await Ingestion(library).delete(["p3"])
    vectors = ChromaIndex(settings.home / "chroma", owner="local", collection="default", embedder=nobody)
    assert vectors.ids() == {f"p{n}" for n in range(20) if n != 3}
    vectors.close()
    await run(settings, source, corpus(tmp_path / "d.jsonl", 22), embedder=nobody)
    again = HashingEmbedder()
    async with await Collection.open(settings, embedder=again) as library:
        assert (await library.search(Query(text=line(21), k=1, mode="dense")))[0].passage.id == "p21"
    assert sorted(text.partition(".")[0] for text in again.embedded) == ["Title 20", "Title 21", "Title 3"]


async def test_passages_lost_by_an_index_are_repaired_and_reported(settings: Settings, tmp_path: Path) -> None:
    await run(settings, corpus(tmp_path / "c.jsonl", 30))
    catalogue = Catalogue(
        open_engine(catalogue_url(settings.home, None)), owner=settings.owner, collection=settings.collection
    )
    indexes = IndexSet(settings, catalogue, HashingEmbedder())
    for name in ALL:
        indexes.ready(name, lambda _name, _passages: None).apply(upsert=[], delete=["p1", "p2"])
    indexes.close()
    catalogue.close()
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        await library.catch_up()
        assert len(library.indexes.notes) == 3
        assert all("2 passages were missing and 0 left over" in note for note in library.indexes.notes)
    assert {count for count, _ in held(settings)} == {30}


class SlowEmbedder(HashingEmbedder):
    """Takes a moment for every batch, as a model does."""

    def embed_passages(self, texts: list[str]) -> Vectors:
        time.sleep(0.1)
        return super().embed_passages(texts)


def ingest_slowly(job: tuple[Settings, Path], pipe: Connection) -> None:
    """Ingest in a child process, which sends the number of stored passages."""
    settings, file = job
    embedder = SlowEmbedder()
    asyncio.run(ingest([file], settings=settings, on_progress=lambda at: pipe.send(at.stored), embedder=embedder))


def kill_at(settings: Settings, file: Path, passages: int, pause: float) -> None:
    """Starts an ingest and kills it a moment after it has stored this many passages."""
    with child(ingest_slowly, (settings, file)) as (_, pipe):
        while pipe.recv() < passages:
            pass
        time.sleep(pause)


async def test_ingest_killed_anywhere_loses_and_repeats_nothing(settings: Settings, tmp_path: Path) -> None:
    file = corpus(tmp_path / "c.jsonl", 2_000)
    draw = random.Random(2)
    for passages in (0, 512, 512):
        kill_at(settings, file, passages, draw.uniform(0.0, 0.2))
    await run(settings, file)
    wanted = {f"p{n}" for n in range(2_000)}
    assert held(settings) == [(2_000, wanted)] * 4
    assert (await run(settings, file)).unchanged == 2_000
