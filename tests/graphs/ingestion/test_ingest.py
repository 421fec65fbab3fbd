import json
from dataclasses import replace
from pathlib import Path

import pytest
from graph_rows import graph_rows

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection.collection import Collection
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.settings import Settings


async def contents(home: Path, folder: Path, workers: int) -> dict[str, object]:
    """Ingest a folder with workers; return everything that is stored."""
    settings = Settings(home=home, embedder="none", ingest_workers=workers)
    await ingest([folder], settings=settings)
    (graph,) = (home / "mentions").glob("*.db")
    (keywords,) = (home / "keywords").iterdir()
    async with await Collection.open(settings) as library:
        documents = [await library.document(listed.id) for listed in await library.documents(limit=1_000)]
        passages = [await library.passages_of(document.id) for document in documents]
    index = KeywordIndex(keywords)
    stems = ("lovelace", "bach", "de:bach", "number", "水", "babbag")
    return {
        "documents": [replace(document, added_at="") for document in documents],
        "passages": passages,
        "keywords": (index.ids(), index.languages(), [index.frequency(stem) for stem in stems]),
        "scores": [index.search(text, 2_000) for text in ("Ada Lovelace in London", "Die Mühle am Bach", "水車小屋")],
        "graph": graph_rows(graph),
    }


@pytest.mark.nightly
async def test_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    texts = "Ada Lovelace met Charles Babbage in London. ", "Die Mühle steht am Bach in Köln. ", "東京の水車小屋。"
    for at in range(40):
        text = "\n\n".join(f"{texts[at % 3] * 12} Number {line} of {at}." for line in range(9))
        (folder / f"{at:02}.txt").write_text(text, encoding="utf-8")
        (folder / f"{at:02}.html").write_text(f"<title>Page {at}</title><p>{text}", encoding="utf-8")
    lines = [{"id": f"l{at}", "title": f"Line {at}", "text": texts[at % 3] * 9 + str(at)} for at in range(300)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    one = await contents(tmp_path / "one", folder, 1)
    assert len(one["documents"]) == 380  # type: ignore[arg-type]
    assert await contents(tmp_path / "three", folder, 3) == one
