"""Filters inside each search, compared with filtering a full scan."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Literal

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sleuth.tools.collection.collection import Collection
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.retriever import FilteredRetriever, Mode, Query, fetch_depth, fuse
from sleuth.tools.search.vectors import VectorIndex
from sleuth.tools.search.vectors import index as vector_index
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry
from sleuth.tools.types import Document

WORDS = ["light", "mill", "ferry", "bridge", "oil", "keeper", "pilot", "stone", "river", "tower", "lamp", "boat"]
NAMES = ["Oda Brask", "Edric Gannow", "Grey Sister", "Pellowrig Light", "Kestrow"]
TAGS = ("contract", "draft", "minutes")
YEARS = ("2023", "2024", "2025")
MODES: tuple[Mode, ...] = ("keyword", "dense", "hybrid", "graph")
DOCUMENTS = 150
SLOW = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


def corpus() -> list[Entry]:
    chance = random.Random(7)
    found = []
    fill = [f"word{number}" for number in range(400)]
    for number in range(DOCUMENTS):
        texts = [
            f"{chance.choice(NAMES)} saw {' '.join(chance.choices(WORDS, k=8))} with {chance.choice(NAMES)}. "
            f"{' '.join(chance.sample(fill, chance.randint(1, 80)))}."
            for _ in range(2)
        ]
        made = entry(f"d{number:03}", *texts, title=chance.choice([*NAMES, f"Report {number}"]), by_place=True)
        about = replace(
            made.document,
            source=f"/files/{chance.choice(['reports', 'letters/old'])}/d{number:03}.{chance.choice(['md', 'pdf'])}",
            date=chance.choice([f"{year}-05-01" for year in YEARS]),
            tags=tuple(sorted(chance.sample(TAGS, chance.randint(0, 2)))),
            author="Ada" if number == 77 else "",
            language="en",
        )
        found.append(replace(made, document=about))
    return found


CORPUS = corpus()


@pytest.fixture(scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Collection]:
    settings = Settings(home=tmp_path_factory.mktemp("home"), ranker="formula")
    async with await Collection.open(settings, embedder=HashingEmbedder()) as opened:
        await Ingestion(opened).put(CORPUS)
        await opened.catch_up()
        yield opened


Test = Callable[[Document], bool]
TERMS: Mapping[str, Test] = {
    "tag=contract": lambda document: "contract" in (document.tags or ()),
    "!tag=draft": lambda document: "draft" not in (document.tags or ()),
    "date>=2024": lambda document: (document.date or "") >= "2024",
    "date=2025": lambda document: (document.date or "").startswith("2025"),
    "path:reports/**": lambda document: "/reports/" in document.source,
    "type:pdf": lambda document: document.source.endswith(".pdf"),
    "author=ada": lambda document: document.author == "Ada",
    "language=de": lambda _: False,
}
filters = st.lists(st.sampled_from(sorted(TERMS)), min_size=1, max_size=3, unique=True)
questions = st.lists(st.sampled_from([*WORDS, *NAMES]), min_size=1, max_size=4).map(" ".join)


def allowed_by(terms: list[str]) -> set[str]:
    return {
        passage.id for each in CORPUS if all(TERMS[term](each.document) for term in terms) for passage in each.passages
    }


@pytest.mark.parametrize("mode", ["keyword", "dense"])
@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(terms=filters, question=questions, k=st.integers(1, 40))
async def test_filtered_search_equals_a_filtered_full_scan(
    library: Collection, mode: Literal["keyword", "dense"], terms: list[str], question: str, k: int
) -> None:
    hits = await library.search(Query(text=question, k=k, mode=mode, where=" ".join(terms)))
    index = library.indexes.ready(mode, lambda *_: None)
    assert isinstance(index, KeywordIndex | VectorIndex)
    allowed = allowed_by(terms)
    everything = await asyncio.to_thread(index.search, question, 2 * DOCUMENTS)
    expected = [hit for hit in everything if hit[0] in allowed][:k]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-5)
    lowest = min((hit.score for hit in hits), default=0.0)  # passages with the same score may replace each other
    above = {id_ for id_, score in expected if score > lowest + 1e-5}
    assert above == {hit.passage.id for hit in hits if hit.score > lowest + 1e-5}


@hypothesis_settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(terms=filters, question=questions, k=st.integers(1, 40))
async def test_filtered_hybrid_search_fuses_filtered_searches(
    library: Collection, terms: list[str], question: str, k: int
) -> None:
    async def found(mode: Mode, k: int) -> list[tuple[str, float]]:
        hits = await library.search(Query(text=question, k=k, mode=mode, where=" ".join(terms)))
        return [(hit.passage.id, hit.score) for hit in hits]

    lists = [await found(mode, fetch_depth(k)) for mode in ("keyword", "dense")]
    assert await found("hybrid", k) == fuse(lists)[:k]


@pytest.mark.parametrize("mode", MODES)
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
@given(terms=filters, question=questions)
async def test_filtered_search_finds_only_matching_documents(
    library: Collection, mode: Mode, terms: list[str], question: str
) -> None:
    seen = frozenset(passage.id for each in CORPUS[:3] for passage in each.passages)
    allowed = allowed_by(terms)
    filtered = FilteredRetriever(library, terms[0])
    hits = await filtered.search(
        Query(text=question, k=400, mode=mode, where=" ".join(terms[1:]), seen=seen, entities=("Oda Brask",))
    )
    assert {hit.passage.id for hit in hits} <= allowed
    if mode == "dense":
        assert len(hits) == len(allowed)
    edges = {reason.source for hit in hits if hit.why for reason in hit.why.reasons if reason.source}
    assert edges <= allowed


async def test_large_filter_is_answered_by_a_deeper_search(
    library: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(text="light mill", k=5, mode="dense", where="!tag=draft")
    exact = await library.search(query)
    monkeypatch.setattr(vector_index, "MAX_EXACT", 0)
    assert [hit.passage.id for hit in await library.search(query)] == [hit.passage.id for hit in exact]


async def test_filter_follows_documents_and_their_metadata(settings: Settings) -> None:
    query = Query(text="light", where="tag=new")
    async with await Collection.open(settings, embedder=HashingEmbedder()) as opened:
        old = replace(entry("a", "The light."), document=replace(entry("a", "The light.").document, language="en"))
        await Ingestion(opened).put([old])
        assert await opened.search(query) == []
        tagged = replace(old, document=replace(old.document, author="", date="", tags=("new",)))
        stored = await Ingestion(opened).put([tagged])
        assert (stored.unchanged, stored.passages) == (1, 0)
        assert [hit.passage.document_id for hit in await opened.search(query)] == ["a"]
        await Ingestion(opened).delete(["a"])
        await Ingestion(opened).put([entry("b", "The light.")])
        assert await opened.search(query) == []
