"""Replies with letters that no database or encoding takes, in SQLite and in Postgres."""

import json
import uuid
from pathlib import Path

import pytest
from four_hops import QUESTION, Shelf
from postgres_fixture import BOTH_STORES
from scripted_model import Replying

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import export_run
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

ODD = "\x00the fair of\ud800 Brindlecote"


@BOTH_STORES
@pytest.mark.parametrize(
    ("method", "reply"),
    [("search-trained", f"<answer>{ODD}</answer>"), ("closed-book", json.dumps({"answer": ODD, "known": True}))],
    ids=["text", "JSON"],
)
async def test_reply_with_odd_letters_is_stored_and_read(
    tmp_path: Path, database_url: str | None, method: str, reply: str
) -> None:
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=Replying(lambda _: reply), retriever=Shelf()))
        id = await runs.start(QUESTION, method)
        answer = await last_answer(runs.run(id))
        assert answer.text == "the fair of\ufffd Brindlecote"
        assert await runs.answer(id) == answer
        kept = json.dumps(await export_run(runs, id), ensure_ascii=False, default=str).encode()
    assert b"Brindlecote" in kept
    assert b"\\u0000" not in kept
