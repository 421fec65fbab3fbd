"""`kill -9` while the room of deleted vectors is given back: all vectors stay, or all passages are indexed again."""

import shutil
import time
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from preloaded import child

from sleuth.tools.search.vectors.chroma_index import ChromaIndex

pytestmark = pytest.mark.integration

KILLS = 12
PASSAGES = [entry(f"d{n}", f"text number {n}").passages[0] for n in range(2_500)]
GONE, KEPT = PASSAGES[:2_100], PASSAGES[2_100:]


def opened(folder: Path) -> ChromaIndex:
    return ChromaIndex(folder, owner="local", collection="default", embedder=HashingEmbedder(dimension=64))


def tidy(folder: Path, pipe: Connection) -> None:
    index = opened(folder)
    pipe.send("begun")
    index.tidy()
    pipe.send("done")
    index.close()


def killed(folder: Path, after: float) -> float | None:
    """Return the duration in seconds; None if the kill came earlier."""
    with child(tidy, folder) as (_, pipe):
        assert pipe.recv() == "begun"
        began = time.monotonic()
        return time.monotonic() - began if pipe.poll(after) else None


@pytest.mark.nightly
def test_stored_documents_survive(tmp_path: Path) -> None:
    full = tmp_path / "full"
    index = opened(full)
    index.apply(upsert=PASSAGES, delete=[])
    index.apply(upsert=[], delete=[passage.id for passage in GONE])
    index.set_applied(8)
    index.close()
    copy = tmp_path / "copy"
    shutil.copytree(full, copy)
    seconds, dice, kills = killed(copy, 300), Random(1), 0
    assert seconds
    for _ in range(20 * KILLS):
        shutil.rmtree(copy)
        shutil.copytree(full, copy)
        kills += killed(copy, dice.uniform(0, seconds)) is None
        index = opened(copy)
        index.tidy()
        if index.applied() == 0:
            index.apply(upsert=KEPT, delete=[])
            index.set_applied(8)
        assert (index.applied(), index.ids()) == (8, {passage.id for passage in KEPT})
        assert index.search(f"{KEPT[9].title}. {KEPT[9].text}", 1)[0][0] == KEPT[9].id
        index.close()
        if kills == KILLS:
            break
    assert kills == KILLS
