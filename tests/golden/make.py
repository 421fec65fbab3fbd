"""Makes the checkpoints that every later release must be able to resume: `python tests/golden/make.py FILE`.

A PAR-RAG run of two steps, stopped when the model server failed after the first review. Made once per layout of the
state (`SCHEMA_VERSION`); an old file is never made again.
"""

import asyncio
import shutil
import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sleuth.agents.scripted import ScriptedModel
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.store import open_store
from sleuth.tools.documents import Hit, Passage
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.retriever import Query
from sleuth.tools.settings import Settings

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


async def make(home: Path) -> None:
    """The interrupted run, in a store of its own."""
    async with open_store(Settings(home=home)) as store:
        runs = Runs(store, Services(model=ScriptedModel(BEFORE), retriever=Shelf()))
        await runs.start(QUESTION, "par-rag", thread=THREAD)
        try:
            async for _ in runs.run(THREAD):
                pass
        except ModelUnavailable:
            return
    raise AssertionError("the run was to be interrupted")


def pack(database: Path, target: Path) -> None:
    """One small file, without the write-ahead log."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("VACUUM")
    connection.close()
    shutil.copyfile(database, target)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(make(Path(folder)))
        pack(Path(folder) / "runs.sqlite", Path(sys.argv[1]))
