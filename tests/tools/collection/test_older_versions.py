from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from entries import entry

from sleuth.tools.collection import Collection
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.vectors import NoEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Entry
from sleuth.tools.types import Hit

TERMS = ["The lease of the mill runs for ten years.", "The tenant pays the rent in advance.", "Corn is kept dry."]
CHANGED = [*TERMS[:2], "Corn is kept dry and cool."]


def version(name: str, *texts: str) -> Entry:
    """A document from a file with this name."""
    made = entry(name, *texts, title="Lease")
    return Entry(document=replace(made.document, source=f"/notes/{name}"), passages=made.passages)


LEASES = [version("lease_v1.md", *TERMS), version("lease_v2.md", *CHANGED), version("old/lease_draft.md", *TERMS)]
OTHER = version("lease_v3.md", "A quite different letter about the lease of another mill in town.")


@pytest.fixture
async def library(settings: Settings) -> AsyncIterator[Collection]:
    async with await Collection.open(settings, embedder=NoEmbedder()) as library:
        await library.put([*LEASES, OTHER])
        yield library


def newer(hits: list[Hit]) -> dict[str, str]:
    return {hit.passage.document_id: hit.newer for hit in hits}


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "graph"])
async def test_older_versions_are_labelled(library: Collection, mode: Mode) -> None:
    hits = await library.search(Query(text="lease of the mill", k=20, mode=mode))
    assert newer(hits) == {
        "lease_v1.md": "lease_v2.md",
        "lease_v2.md": "",
        "old/lease_draft.md": "lease_v2.md",
        "lease_v3.md": "",
    }


async def test_label_follows_the_documents(library: Collection) -> None:
    query = Query(text="lease", k=20, mode="keyword")
    assert newer(await library.search(query))["lease_v1.md"] == "lease_v2.md"
    await library.put([version("lease final.md", *CHANGED)])
    assert newer(await library.search(query))["lease_v2.md"] == ""  # the text of the third version differs
    await library.delete(["lease_v3.md"])
    found = newer(await library.search(query))
    assert (found["lease_v1.md"], found["lease_v2.md"], found["lease final.md"]) == (*["lease final.md"] * 2, "")


async def test_equal_versions_and_lines_of_a_corpus_have_no_newer_one(settings: Settings) -> None:
    copies = [version("a/lease.md", *TERMS), version("b/lease.md", *TERMS)]
    lines = [version(f"lease_v{number}", *TERMS) for number in (1, 2)]
    lines = [Entry(document=replace(each.document, source="/a.jsonl"), passages=each.passages) for each in lines]
    async with await Collection.open(settings, embedder=NoEmbedder()) as library:
        await library.put([*copies, *lines])
        assert set(newer(await library.search(Query(text="lease", k=20, mode="keyword"))).values()) == {""}


async def test_older_versions_are_hidden_on_request(settings: Settings, library: Collection) -> None:
    many = [version(f"lease_v2_{number}.md", *CHANGED) for number in range(30)]
    await library.put(many)
    latest = settings.model_copy(update={"latest_only": True})
    async with await Collection.open(latest, embedder=NoEmbedder()) as other:
        hits = await other.search(Query(text="tenant pays the rent", k=2, mode="keyword"))
        assert [hit.passage.document_id for hit in hits] == ["lease_v2_29.md"]
        hits = await other.search(Query(text="lease mill", k=2, mode="keyword"))
    assert [(hit.rank, hit.newer) for hit in hits] == [(1, ""), (2, "")]
    assert {hit.passage.document_id for hit in hits} == {"lease_v2_29.md", "lease_v3.md"}
