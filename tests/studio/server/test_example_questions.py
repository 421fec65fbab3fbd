"""Example questions: written once for each state of the documents, in the background."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from entries import entry
from scenes import Replying
from sqlalchemy import create_engine

from sleuth.agents.model import Request
from sleuth.studio.server.middleware.limits import Quota
from sleuth.studio.server.runs.examples import ExampleQuestions
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

FILL = (
    "The wind is strong here for most of the year, and few people live on the rock; the tide covers the landing twice."
)
LIGHT = f"The Pellowrig Light was built by Bastian Oake on Ram Rock. {FILL}"
QUESTION = "Who built the Pellowrig Light?"


def reply(request: Request) -> Any:
    if request.role == "reader":
        return {"answerable": True, "answer": "Bastian Oake", "citations": []}
    return {"question": QUESTION, "answer": "Bastian Oake", "quote": ""}


class Tenants:
    """One owner, whose model server may be away."""

    def __init__(self, settings: Settings, collection: Collection) -> None:
        self.settings = settings
        self.model_server = Replying(reply)
        self.is_away = False
        self._collection = collection

    async def collection(self, owner: str) -> Collection:
        return self._collection

    async def model(self) -> Replying:
        if self.is_away:
            raise ModelUnavailable("No model server answers.")
        return self.model_server


async def written(examples: ExampleQuestions) -> list[str]:
    """Ask for the examples, and again when the background work has ended."""
    await examples.of("anna")
    await asyncio.gather(*cast(Any, examples)._making.values())
    return await examples.of("anna")


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_examples_are_written_once_for_each_state(tmp_path: Path, is_enabled: bool) -> None:
    settings = Settings(home=tmp_path, embedder="none", example_questions=is_enabled)
    async with await Collection.open(settings) as collection:
        tenants = Tenants(settings, collection)
        quota = Quota(create_engine(f"sqlite:///{tmp_path / 'serve.sqlite'}"), tokens_a_day=9_999)
        examples = ExampleQuestions(cast(Any, tenants), quota)
        assert await written(examples) == []  # no documents
        await collection.put([entry("light", LIGHT, title="Pellowrig Light")])
        tenants.is_away = True
        assert await written(examples) == []
        tenants.is_away = False
        assert await written(examples) == ([QUESTION] if is_enabled else [])
        calls = len(tenants.model_server.requests)
        assert await written(ExampleQuestions(cast(Any, tenants), quota)) == ([QUESTION] if is_enabled else [])
        assert len(tenants.model_server.requests) == calls
        assert calls == (2 if is_enabled else 0)
        await collection.put([entry("light", f"{LIGHT} And more.", title="Pellowrig Light")])
        await written(examples)
        files = sorted((tmp_path / "examples").glob("*.jsonl")) if is_enabled else []
        assert len(files) == is_enabled
        await examples.close()
