"""A home is the folder of its name, with any characters in it."""

from pathlib import Path

import pytest
from hashing_embedder import HashingEmbedder
from scripted_model import ScriptedModel

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.cli.commands.doctor import examine
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings

PAIRS = [
    ("v?1", "v?2"),
    *(
        pytest.param(pair, marks=pytest.mark.sweep)
        for pair in (("p%20q", "p q"), ("a&b#c", "a"), ("Überweg", "Uberweg"))
    ),
]
PLACES = {"first": "Kestrow", "second": "Immer"}


def written(documents: Path, place: str) -> Path:
    documents.mkdir()
    (documents / "light.txt").write_text(f"The light stands at {place}.")
    return documents


async def use(home: Path, documents: Path, place: str) -> None:
    """Ingest a document and ask about it."""
    settings = Settings(home=home, embedder="hashing")
    assert (await ingest([documents], settings=settings, embedder=HashingEmbedder())).added == 1
    reply = {"answerable": True, "answer": place, "citations": [{"source": 1, "quote": f"stands at {place}"}]}
    async with await Collection.open(settings, embedder=HashingEmbedder()) as library, open_store(settings) as store:
        runs = RunService(store, Services(model=ScriptedModel([reply]), retriever=library))
        answer = await last_answer(runs.run(await runs.start("Where is the light?", "plain-rag")))
    assert (answer.text, [citation["quote"] for citation in answer.citations]) == (place, [f"stands at {place}"])


@pytest.mark.parametrize("names", PAIRS)
async def test_homes_of_similar_names_keep_documents_and_runs_apart(tmp_path: Path, names: tuple[str, str]) -> None:
    homes = tmp_path / "homes"
    for name, (number, place) in zip(names, PLACES.items(), strict=True):
        await use(homes / name, written(tmp_path / number, place), place)
    assert sorted(path.name for path in homes.iterdir()) == sorted(names)
    for name, place in zip(names, PLACES.values(), strict=True):
        settings = Settings(home=homes / name, embedder="hashing", model_url="http://127.0.0.1:1/v1")
        async with open_store(settings) as store:
            (thread,) = await store.threads.list_newest()
            assert (await RunService(store).answer(thread.id)).text == place
        async with await Collection.open(settings, embedder=HashingEmbedder()) as library:
            (listed,) = await library.documents()
            assert place in (await library.document(listed.id)).text
        found = {finding.name: finding.detail for finding in await examine(settings)}
        assert "1 document in" in found["catalogue"]
