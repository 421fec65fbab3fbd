"""Makes a SLEUTH_HOME that every later release must open, migrate and resume: `PYTHONPATH=tests/support python
tests/golden/make.py tests/golden/home-VERSION.zip`.

Documents in all indexes, and a PAR-RAG run of two steps, stopped when the model server failed after the first review.
Made once per layout of what is stored, and named for its release; the file of a release is never made again.
"""

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from hashing_embedder import HashingEmbedder
from scripted_model import ScriptedModel

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search.retriever import Query
from sleuth.tools.settings import Settings
from sleuth.tools.types import Hit, Passage

FOLDER = Path(__file__).parent
THREAD = "golden"
QUESTION = "In which year was the yard founded that built the Lady Morrable?"
YARD = "Trevandle & Ruske"
TEXTS = {
    "ferry": f"The ferry Lady Morrable was built by {YARD}.",
    "yard": f"{YARD} was founded in 1868 at Hollinmouth.",
}
BEFORE = [
    [{"question": "Which yard built the Lady Morrable?"}, {"question": "In which year was it founded?", "needs": [1]}],
    {"answer": YARD, "citations": [{"source": 1, "quote": f"built by {YARD}"}]},
    {"status": "PASS"},
    ModelUnavailable("The model server is down."),
]
AFTER = [
    {"question": f"In which year was {YARD} founded?"},
    {"answer": "1868", "citations": [{"source": 2, "quote": "founded in 1868"}]},
    {"status": "PASS"},
    {"known": True, "answer": "1868"},
]


class Shelf:
    """Finds all there is."""

    async def search(self, query: Query) -> list[Hit]:
        """Both passages."""
        passages = [
            Passage(id=id, document_id=f"{id}.md", title=id.title(), text=text, start=0, end=len(text))
            for id, text in TEXTS.items()
        ]
        return [Hit(passage=passage, score=1.0, rank=rank) for rank, passage in enumerate(passages, start=1)]


def corpus(folder: Path, texts: dict[str, str]) -> Path:
    """A corpus of these texts, by id."""
    file = folder / "corpus.jsonl"
    rows = [{"id": id, "title": id.title(), "text": text} for id, text in texts.items()]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


async def make(home: Path) -> None:
    """The documents, and the interrupted run."""
    settings = Settings(home=home, embedder="hashing")
    await ingest([corpus(home.parent, TEXTS)], settings=settings, embedder=HashingEmbedder())
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=ScriptedModel(BEFORE), retriever=Shelf()))
        await runs.start(
            RunRequest(question=QUESTION, method="par-rag", values={"skip_supported": False}, thread=THREAD)
        )
        try:
            async for _ in runs.run(THREAD):
                pass
        except ModelUnavailable:
            return
    raise AssertionError("the run was to be interrupted")


def pack(home: Path, target: Path) -> None:
    """One small file: databases without their write-ahead logs, no locks."""
    for path in (path for path in home.rglob("*") if path.suffix in (".db", ".sqlite", ".sqlite3")):
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("VACUUM")
        connection.close()
    with ZipFile(target, "w", ZIP_DEFLATED) as file:
        for path in sorted(path for path in home.rglob("*") if path.is_file() and path.suffix != ".lock"):
            file.write(path, path.relative_to(home))


def unpack(name: str, settings: Settings) -> Settings:
    """The home of a store in this folder."""
    with ZipFile(FOLDER / name) as file:
        file.extractall(settings.home)
    return settings


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(make(Path(folder) / "home"))
        pack(Path(folder) / "home", Path(sys.argv[1]))
