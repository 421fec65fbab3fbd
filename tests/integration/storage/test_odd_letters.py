"""Replies with letters that no database or encoding takes: in every method, in SQLite and in Postgres."""

import json
import uuid
from pathlib import Path
from random import Random
from typing import Any

import pytest
from four_hops import QUESTION, Shelf
from scripted_model import Replying

from sleuth.agents.model import Request
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.registry import CHAT, METHODS
from sleuth.graphs.runs.history import export_run
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

NUL, HALF = "\x00", "\ud800"


class Odd(Replying):
    """Model that replies by the schema, with unusual characters in each text."""

    def __init__(self) -> None:
        super().__init__(self._say)
        self._dice = Random(1)

    def name_of(self, role: str) -> str:
        return "odd"

    def _say(self, request: Request) -> Any:
        if request.schema is not None:
            return json.dumps(self._fitting(request.schema, request.schema))
        return self._dice.choice(request.choices) if request.choices else f"{NUL}the fair of{HALF} Brindlecote"

    def _fitting(self, schema: dict[str, Any], whole: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self._fitting(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        if options := schema.get("anyOf") or schema.get("enum"):
            chosen = self._dice.choice(options)
            return self._fitting(chosen, whole) if isinstance(chosen, dict) else chosen
        match schema.get("type"):
            case "object":
                return {name: self._fitting(each, whole) for name, each in schema.get("properties", {}).items()}
            case "array":
                return [self._fitting(schema["items"], whole) for _ in range(max(1, schema.get("minItems", 1)))]
            case "integer" | "number":
                return int(schema.get("minimum", 1))
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return schema.get("const", f"{NUL}fair{HALF}")


@pytest.mark.parametrize("method", [*METHODS, CHAT.name])
async def test_faulty_runs_end_and_can_be_read(tmp_path: Path, database_url: str | None, method: str) -> None:
    settings = Settings(home=tmp_path / "home", database_url=database_url, owner=uuid.uuid4().hex)
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=Odd(), retriever=Shelf()))
        id = await runs.start(QUESTION, method)
        answer = await last_answer(runs.run(id))
        assert await runs.answer(id) == answer
        kept = json.dumps(await export_run(runs, id), ensure_ascii=False, default=str).encode()
    assert b"fair" in kept
    assert b"\\u0000" not in kept
