"""Removing a run deletes all its rows in one transaction."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from four_hops import QUESTION, InProcess, Shelf
from sqlalchemy import event

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.pruning import prune
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration


class Killed(Exception):
    """The process ends here."""


def die_at_the_row(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
    if statement.startswith("DELETE FROM sleuth_threads"):
        raise Killed


async def test_listed_run_always_has_its_checkpoints(tmp_path: Path, database_url: str | None) -> None:
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
        id = await runs.start(QUESTION, "par-rag")
        await last_answer(runs.run(id))
        before = await list_checkpoints(runs, id)
        event.listen(store.engine, "before_cursor_execute", die_at_the_row)
        with pytest.raises(Killed):
            await prune(runs, older_than=-60, keep_last=None)
        event.remove(store.engine, "before_cursor_execute", die_at_the_row)
        assert [thread.id for thread in await store.threads.list_newest()] == [id]
        assert await list_checkpoints(runs, id) == before
        assert (await prune(runs, older_than=-60, keep_last=None)).threads == 1
        assert await store.threads.list_newest() == []
        assert await history_rows(runs, id) == 0


async def history_rows(runs: RunService, id: str) -> int:
    """Return the number of its checkpoints."""
    found = runs.store.saver.alist({"configurable": {"thread_id": id}})
    return len([each async for each in found])
