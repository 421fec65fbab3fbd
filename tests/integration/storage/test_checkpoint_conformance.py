"""LangGraph's own conformance suite over every saver of ours."""

from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from sleuth.graphs.persistence.store import open_store
from sleuth.studio.langgraph_dev.checkpointer import DevCheckpoints
from sleuth.tools.settings import Settings

conformance = pytest.importorskip("langgraph.checkpoint.conformance", reason="run `make setup`: the suite is new in it")

pytestmark = pytest.mark.integration


async def test_run_savers_conform(tmp_path: Path, database_url: str | None) -> None:
    @conformance.checkpointer_test(name=f"runs {uuid4().hex}")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str]]:
        settings = Settings(home=tmp_path / uuid4().hex, database_url=database_url)
        async with open_store(settings) as store:
            yield store.saver

    report = await conformance.validate(saver)
    assert report.passed_all_base(), report.to_dict()


async def test_development_saver_conforms(tmp_path: Path) -> None:
    @conformance.checkpointer_test(name=f"dev {uuid4().hex}")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str]]:
        async with DevCheckpoints.open(tmp_path / f"{uuid4().hex}.db", JsonPlusSerializer()) as opened:
            yield opened

    report = await conformance.validate(saver)
    assert report.passed_all(), report.to_dict()
