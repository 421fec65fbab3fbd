"""Index folders that are deleted under an open library are built again at the next use."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.retriever import MODES, Mode, Query
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Entry


def light(place: str) -> Entry:
    return entry(place, f"The light stands at {place}.")


def _emptied(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()


DELETIONS: dict[str, Callable[[Path], object]] = {
    "chroma": lambda home: shutil.rmtree(home / "chroma"),
    "chroma.sqlite3": lambda home: (home / "chroma" / "chroma.sqlite3").unlink(),
    "keywords": lambda home: shutil.rmtree(home / "keywords"),
    "files of keywords": lambda home: _emptied(home / "keywords"),
    "mentions": lambda home: shutil.rmtree(home / "mentions"),
}


ADDED = ("Fennimer", "Pellowrig", "Kestle", "Ombersley", "Tarn")


async def first(library: Collection, place: str) -> dict[Mode, str]:
    hits = {mode: await library.search(Query(text=f"Which light stands at {place}?", k=1, mode=mode)) for mode in MODES}
    return {mode: each[0].passage.document_id for mode, each in hits.items()}


@pytest.fixture
async def libraries(settings: Settings) -> AsyncIterator[list[Collection]]:
    """The libraries of two owners in one process, each with documents in all indexes."""
    async with AsyncExitStack() as opened:
        made = []
        for owner in ("local", "other"):
            mine = settings.model_copy(update={"owner": owner})
            library = await opened.enter_async_context(await Collection.open(mine, embedder=HashingEmbedder()))
            await library.put([light(place) for place in ("Kestrow", "Immer", "Quarve")])
            assert await first(library, "Immer") == dict.fromkeys(MODES, "Immer")
            made.append(library)
        yield made


@pytest.mark.parametrize("searched", [True, False])
async def test_deleted_indexes_are_rebuilt_at_the_next_use(
    libraries: list[Collection], settings: Settings, searched: bool
) -> None:
    for added, (deletion, delete) in zip(ADDED, DELETIONS.items(), strict=True):
        delete(settings.home)
        for library in libraries:
            if searched:
                assert await first(library, "Immer") == dict.fromkeys(MODES, "Immer"), deletion
            await library.put([light(added)])
            await library.catch_up()
            assert await first(library, added) == dict.fromkeys(MODES, added), deletion
            assert await first(library, "Immer") == dict.fromkeys(MODES, "Immer"), deletion
