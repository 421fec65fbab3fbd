"""LangGraph's own conformance suite over every saver of ours."""

from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from postgres_fixture import BOTH_STORES

from sleuth.graphs.persistence.store import open_store
from sleuth.tools.settings import Settings

conformance = pytest.importorskip("langgraph.checkpoint.conformance", reason="run `make setup`: the suite is new in it")


@BOTH_STORES
async def test_run_savers_conform(tmp_path: Path, database_url: str | None) -> None:
    @conformance.checkpointer_test(name=f"runs {uuid4().hex}")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str]]:
        settings = Settings(home=tmp_path / uuid4().hex, database_url=database_url)
        async with open_store(settings) as store:
            yield store.saver

    report = await conformance.validate(saver)
    assert report.passed_all_base(), report.to_dict()
