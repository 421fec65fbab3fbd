"""Evaluation questions with the passages that graph search finds for them, without vectors."""

import gzip
import json
from hashlib import sha1
from pathlib import Path
from typing import Any

from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search import Query
from sleuth.tools.settings import Settings

SETS = ("2wiki", "hotpot", "musique")
PASSAGES = 5


def half_of(key: str) -> int:
    """Return 0 for questions that choose settings, 1 for those that are reported."""
    return int(sha1(key.encode(), usedforsecurity=False).hexdigest(), 16) // 2 % 2


async def retrieve(data: Path, home: Path, half: int, count: int, *, k: int = PASSAGES) -> list[dict[str, Any]]:
    """Return questions of a set with the title and text of their first passages as `sources`, and their `ids`.

    Args:
        data: the set's folder, with corpus.jsonl.gz and questions.jsonl.gz.
        home: gets the collection and what was found, which is read the next time.
        half: of the questions, as in `half_of`.
        count: the most questions.
        k: passages of each.
    """
    settings = Settings(home=home, embedder="none")
    file = home / f"shown-{half}-{count}-{k}.json"
    if file.is_file():
        return list(json.loads(file.read_text(encoding="utf-8")))
    await ingest([data / "corpus.jsonl.gz"], settings=settings)
    lines = gzip.decompress((data / "questions.jsonl.gz").read_bytes()).splitlines()
    rows = sorted(
        (row for row in map(json.loads, lines) if half_of(row["id"]) == half),
        key=lambda row: sha1(row["id"].encode(), usedforsecurity=False).digest(),
    )[:count]
    async with await Collection.open(settings) as collection:
        for row in rows:
            hits = await collection.search(Query(text=row["question"], k=k, mode="graph"))
            row["ids"] = [hit.passage.document_id for hit in hits]
            row["sources"] = [[hit.passage.title, hit.passage.text] for hit in hits]
    file.write_text(json.dumps(rows), encoding="utf-8")
    return rows
