import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.embedder import EndpointEmbedder, LocalEmbedder, NoEmbedder, make_embedder
from sleuth.tools.errors import EmbedderChanged, StoreError, UnknownName, UsageError
from sleuth.tools.library import Library
from sleuth.tools.retriever import Query, Retriever
from sleuth.tools.settings import Settings


async def test_a_hit_carries_the_passage_its_rank_and_its_score(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        retriever: Retriever = library
        bridge = entry("bridge", "The bridge is made of stone.", "Nothing to see.")
        await library.put([bridge, entry("mill", "The mill stands at the bridge."), entry("sea", "Water.")])
        hits = await retriever.search(Query(text="stone bridge", k=5, mode="keyword"))
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert hits[0].passage == bridge.passages[0]
        assert "sea" not in {hit.passage.document_id for hit in hits}
        assert len(await library.search(Query(text="bridge", k=1, mode="keyword"))) == 1


async def test_a_search_sees_what_was_put_a_moment_ago(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        for word in ("first", "second"):
            await library.put([entry(word, f"The {word} text.")])
            assert [hit.passage.document_id for hit in await library.search(Query(text=word, mode="keyword"))] == [word]


async def test_an_empty_collection_says_how_to_fill_it(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        with pytest.raises(UsageError, match=r"no documents yet.*sleuth ingest"):
            await library.search(Query(text="anything"))


async def test_the_graph_is_refused_until_it_is_there(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        with pytest.raises(UsageError, match="not available yet"):
            await library.search(Query(text="anything", mode="graph"))


async def test_an_empty_question_is_refused(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        await library.put([entry("a", "x")])
        with pytest.raises(UsageError, match="empty"):
            await library.search(Query(text=" \n", mode="keyword"))


async def test_deleting_something_unknown_deletes_nothing(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder()) as library:
        await library.put([entry("guide", "x")])
        with pytest.raises(UnknownName, match="Did you mean guide"):
            await library.delete(["guide", "guid"])
        assert await library.count() == (1, 1)


async def test_another_embedder_is_refused_by_both_names(settings: Settings) -> None:
    async with await Library.open(settings, embedder=HashingEmbedder("one")) as library:
        await library.put([entry("a", "x")])
    with pytest.raises(EmbedderChanged, match=r"one.*two.*--rebuild"):
        await Library.open(settings, embedder=HashingEmbedder("two"))


async def test_words_are_found_without_an_embedder(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    bare = settings.model_copy(update={"embedder": "none"})
    async with await Library.open(bare) as library:
        await library.put([entry("bridge", "The bridge is made of stone."), entry("sea", "Water.")])
        await library.catch_up()
        assert (library.embedder, library.slowest) == (None, "keyword")
        for query in [Query(text="stone", mode=mode) for mode in ("keyword", "hybrid", "hybrid")]:
            assert [hit.passage.document_id for hit in await library.search(query)] == ["bridge"]
        assert [record.getMessage() for record in caplog.records] == [
            "SLEUTH_EMBEDDER is none: hybrid search goes by words alone."
        ]
        with pytest.raises(UsageError, match=r"SLEUTH_EMBEDDER is none.*mode keyword.*sleuth ingest"):
            await library.search(Query(text="stone", mode="dense"))


async def test_no_embedder_is_no_other_embedder(settings: Settings) -> None:
    for embedder in (NoEmbedder(), HashingEmbedder("one"), NoEmbedder()):
        async with await Library.open(settings, embedder=embedder) as library:
            await library.put([entry("a", "x")])
    with pytest.raises(EmbedderChanged, match=r"one.*two.*--rebuild"):
        await Library.open(settings, embedder=HashingEmbedder("two"))


async def test_a_home_that_cannot_be_made_is_explained(settings: Settings) -> None:
    settings.home.write_text("a file, not a folder")
    with pytest.raises(StoreError, match="SLEUTH_HOME"):
        await Library.open(settings, embedder=HashingEmbedder())


def test_the_embedder_is_what_the_setting_looks_like() -> None:
    assert isinstance(make_embedder(Settings(embedder="all-MiniLM-L6-v2")), LocalEmbedder)
    assert isinstance(make_embedder(Settings(embedder="none")), NoEmbedder)
    assert isinstance(make_embedder(Settings(embedder="https://host/v1#model")), EndpointEmbedder)
