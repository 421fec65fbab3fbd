import json
from pathlib import Path

import numpy as np
from hashing_embedder import HashingEmbedder

from sleuth.graphs.ingestion.graph import IngestState, after_embed, after_read, first_few, ingest
from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.entity_graph.names import name_id
from sleuth.tools.settings import Settings


def state(**values: object) -> IngestState:
    return IngestState(roots=["docs"], worklist="list", **values)  # type: ignore[arg-type]


def test_reading_runs_in_parallel_with_embedding() -> None:
    assert after_read(state()) == ["read", "embed"]
    assert after_read(state(all_read=True)) == ["embed"]
    assert after_embed(state()) == "__end__"
    assert after_embed(state(all_read=True)) == "report"


def test_checkpoint_keeps_only_the_first_failures() -> None:
    assert first_few(["a"], ["b"]) == ["a", "b"]
    assert len(first_few(["a"] * 15, ["b"] * 15)) == 20


async def test_changed_document_leaves_no_vectors_of_its_names(settings: Settings, tmp_path: Path) -> None:
    embedder, corpus = HashingEmbedder(), tmp_path / "corpus.jsonl"

    async def write(text: str) -> None:
        corpus.write_text(json.dumps({"id": "film", "title": "Low Tide", "text": text}), encoding="utf-8")
        await ingest([corpus], settings=settings, embedder=embedder)

    await write("Low Tide was made by Oda Brask.")
    async with await Collection.open(settings, embedder=embedder) as library:
        (document,) = await library.documents()
        (passage,) = await library.passages_of(document.id)
        found = {passage.fingerprint(): [("Low Tide", "made by", "Oda Brask")]}
        await library.triples(model="small").put(found, version="1")
        assert (await library.knowledge_graph()).names() == 2
    (file,) = (settings.home / "names").iterdir()
    with np.load(file) as stored:
        assert sorted(stored["names"].tolist()) == sorted(map(name_id, ("low tide", "oda brask")))
    await write("Low Tide was made by nobody.")
    with np.load(file) as stored:
        assert not stored["names"].size
