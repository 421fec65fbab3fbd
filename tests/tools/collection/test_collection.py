import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import EmbedderChanged, StoreError, UnknownName, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search import Mode
from sleuth.tools.search.retriever import DocumentReader, Query, Retriever
from sleuth.tools.search.vectors.embedder import NoEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit


async def test_hit_has_passage_rank_and_score(settings: Settings) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        retriever: Retriever = library
        bridge = entry("bridge", "The bridge is made of stone.", "Nothing to see.")
        await Ingestion(library).put([bridge, entry("mill", "The mill stands at the bridge."), entry("sea", "Water.")])
        hits = await retriever.search(Query(text="stone bridge", k=5, mode="keyword"))
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert hits[0].passage == bridge.passages[0]
        assert "sea" not in {hit.passage.document_id for hit in hits}
        assert len(await library.search(Query(text="bridge", k=1, mode="keyword"))) == 1
        assert isinstance(library, DocumentReader)
        assert tuple(await library.passages_of("bridge")) == tuple(bridge.passages)


FERRY = entry("ferry", "The Grey Sister was built for Oda Brask.", title="Grey Sister")
BUILDER = entry("builder", "She was a pilot from Kestrow who married twice.", title="Oda Brask")
OTHERS = [
    entry(f"o{number}", f"A pilot of number {number} met a sister.", title=f"Report {number}") for number in range(9)
]


async def test_search_of_an_empty_collection_or_question_is_refused(settings: Settings, tmp_path: Path) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        with pytest.raises(UsageError, match=r"no documents yet.*sleuth ingest"):
            await library.search(Query(text="anything"))
        with pytest.raises(UsageError, match="question is empty"):
            await library.search(Query(text=" \n", mode="keyword"))
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="SLEUTH_HOME"):
        await Collection.open(settings.model_copy(update={"home": tmp_path / "file"}), embedder=HashingEmbedder())


@pytest.fixture
async def ferries(settings: Settings) -> AsyncIterator[Collection]:
    """A collection without vectors in which one passage names another."""
    async with await Collection.open(settings, embedder=NoEmbedder()) as library:
        await Ingestion(library).put([FERRY, BUILDER, *OTHERS])
        yield library


def documents(hits: list[Hit]) -> list[str]:
    return [hit.passage.document_id for hit in hits]


@pytest.mark.parametrize("mode", ["keyword", "graph"])
async def test_a_copy_takes_no_place_in_a_search(ferries: Collection, mode: Mode) -> None:
    text = "The Grey Sister was built for Oda Brask."
    await Ingestion(ferries).put([entry(f"copy{number}", text, title="Copy") for number in range(3)])
    hits = await ferries.search(Query(text="For whom was the Grey Sister built?", k=3, mode=mode))
    copies = [id for id in documents(hits) if id == "ferry" or id.startswith("copy")]
    assert len(copies) == 1
    assert [hit.rank for hit in hits] == [1, 2, 3], "the others move up"


@pytest.mark.parametrize("copies", [12, 150])
@pytest.mark.parametrize("mode", ["keyword", "dense", "hybrid", "graph", "knowledge-graph"])
async def test_search_finds_as_many_passages_as_there_are_beside_copies(
    settings: Settings, mode: Mode, copies: int
) -> None:
    text, others = "The kelp fair of Varn is held in May.", [f"A fair of {name}." for name in ("Oke", "Rill", "Tarn")]
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        entries = [entry(f"copy{number:03}", text) for number in range(copies)]
        entries += [entry(f"other{number}", other) for number, other in enumerate([*others, *map(str.upper, others)])]
        await Ingestion(library).put(entries)
        query = Query(text="When is the kelp fair of Varn held?", k=5, mode=mode)
        for where in ("", "!id=copy000"):
            found = documents(await library.search(replace(query, where=where)))
            assert (len({*found}), sum(id.startswith("copy") for id in found)) == (5, 1)
            assert not where or "copy000" not in found


async def test_ingest_names_a_copy(settings: Settings, tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "other.md"):
        (tmp_path / name).write_text("The same words." if name != "other.md" else "Other words.")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": "{id}", "text": "These words twice."}}\n' for id in "ab"))
    async with await Collection.open(settings, embedder=NoEmbedder()) as library:
        for name, note in (
            ("a.md", []),
            ("other.md", []),
            ("b.md", [f"b.md: has the same text as {tmp_path / 'a.md'}."]),
            ("rows.jsonl", ["rows.jsonl: contains a text twice."]),
        ):
            async with Ingestion(library) as ingestion:
                report = await ingestion.run([tmp_path / name])
            assert [each.removeprefix(f"{tmp_path}/") for each in report.warnings] == note


async def test_graph_search_explains_named_passages(ferries: Collection) -> None:
    hits = await ferries.search(Query(text="For whom was the Grey Sister built?", k=2, mode="graph"))
    assert documents(hits) == ["ferry", "builder"]
    assert hits[1].why is not None
    reason = hits[1].why.reasons[0]
    assert (reason.kind, reason.source, reason.name) == ("names", FERRY.passages[0].id, "Oda Brask")
    assert reason.sentence == FERRY.passages[0].text[reason.start : reason.end]


async def test_formula_score_is_the_sum_of_its_parts(settings: Settings, ferries: Collection) -> None:
    by_formula = settings.model_copy(update={"ranker": "formula"})
    async with await Collection.open(by_formula, embedder=NoEmbedder()) as library:
        hits = await library.search(Query(text="For whom was the Grey Sister built?", k=2, mode="graph"))
        assert documents(hits) == ["ferry", "builder"]
        for hit in hits:
            assert hit.why is not None
            assert hit.score == pytest.approx(hit.why.parts["alone"] + hit.why.parts["edges"])


async def test_second_hop_follows_found_passages_until_they_are_deleted(ferries: Collection) -> None:
    seen = frozenset({FERRY.passages[0].id, "gone"})
    query = Query(text="Where did the owner live?", k=20, mode="graph", seen=seen)
    assert documents(await ferries.search(query)) == ["builder", "ferry"]
    await Ingestion(ferries).delete(["ferry"])
    assert await ferries.search(query) == []


async def test_deleting_an_unknown_document_deletes_nothing(settings: Settings) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
        await Ingestion(library).put([entry("guide", "x")])
        with pytest.raises(UnknownName, match="Did you mean guide"):
            await Ingestion(library).delete(["guide", "guid"])
        assert await library.count() == (1, 1)


async def test_deletion_does_not_build_an_index(ferries: Collection) -> None:
    await ferries.search(Query(text="pilot", mode="keyword"))
    await Ingestion(ferries).delete(["ferry"])
    indexed: list[tuple[str, int]] = []
    await ferries.catch_up(on_indexed=lambda *each: indexed.append(each))
    assert indexed == [("graph", 10)]


async def test_keyword_search_works_without_an_embedder(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    bare = settings.model_copy(update={"embedder": "none"})
    async with await Collection.open(bare) as library:
        await Ingestion(library).put([entry("bridge", "The bridge is made of stone."), entry("sea", "Water.")])
        await library.catch_up()
        assert (library.embedder, library.indexes.names[-1]) == (None, "graph")
        for query in [Query(text="stone", mode=mode) for mode in ("keyword", "hybrid", "hybrid")]:
            assert [hit.passage.document_id for hit in await library.search(query)] == ["bridge"]
        assert [record.getMessage() for record in caplog.records] == [
            "SLEUTH_EMBEDDER is none: hybrid search uses the keyword index only."
        ]
        with pytest.raises(UsageError, match=r"SLEUTH_EMBEDDER is none.*mode graph or keyword.*sleuth ingest"):
            await library.search(Query(text="stone", mode="dense"))


async def test_missing_embedder_is_not_another_embedder(settings: Settings) -> None:
    for embedder in (NoEmbedder(), HashingEmbedder("one"), NoEmbedder()):
        async with await Collection.open(settings, embedder=embedder) as library:
            await Ingestion(library).put([entry("a", "x")])
    with pytest.raises(EmbedderChanged, match=r"one.*two.*--rebuild"):
        await Collection.open(settings, embedder=HashingEmbedder("two"))


async def test_searches_of_a_collection_leave_threads_to_others(settings: Settings) -> None:
    active: list[int] = []

    class Slow(Collection):
        def _search(self, query: Query) -> list[Hit]:
            active.append(1)
            time.sleep(0.05)
            most.append(len(active))
            active.pop()
            return super()._search(query)

    most: list[int] = []
    async with await Slow.open(settings, embedder=HashingEmbedder()) as collection:
        await Ingestion(collection).put([entry("a", "A bridge.")])
        found = await asyncio.gather(*(collection.search(Query(text="bridge " * 3_000)) for _ in range(12)))
    assert max(most) <= 4
    assert all(hits[0].passage.document_id == "a" for hits in found)


def test_searching_imports_no_ingestion(tmp_path: Path) -> None:
    """A question needs no reader of files, no workers and no cluster."""
    script = """
import asyncio, sys
from pathlib import Path
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings

async def main():
    async with await Collection.open(Settings(home=Path(sys.argv[1]), embedder="none")) as collection:
        print(await collection.count())

asyncio.run(main())
unwanted = ("sleuth.tools.ingestion", "sleuth.tools.documents.worker", "sleuth.tools.documents.parallel_reading")
print([name for name in sys.modules if name.startswith(unwanted) or name == "ray"])
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.splitlines() == ["(0, 0)", "[]"]
