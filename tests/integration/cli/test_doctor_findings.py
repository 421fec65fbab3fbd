"""Findings of `sleuth doctor` in real stores and servers."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from process import free_port

from sleuth.studio.cli.doctor_checks import Finding, examine
from sleuth.tools.settings import Settings
from sleuth.tools.storage import SCHEMA_VERSION
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url
from sleuth.tools.types import EmbedderRecord

pytestmark = pytest.mark.integration


async def findings(home: Path, **changes: Any) -> dict[str, Finding]:
    nowhere = f"http://127.0.0.1:{free_port()}"
    settings = Settings(home=home, **{"model_url": f"{nowhere}/v1"} | changes)
    return {finding.name: finding for finding in await examine(settings)}


async def test_doctor_fresh_home_lacks_only_the_model_server(tmp_path: Path) -> None:
    found = await findings(tmp_path / "fresh")
    assert found["home"].ok
    assert "empty" in found["catalogue"].detail
    assert "empty" in found["Chroma"].detail
    assert (found["model server"].ok, found["model server"].fix) == (False, "sleuth model serve")
    assert not (tmp_path / "fresh").exists()  # looking makes nothing


async def test_doctor_accepts_no_embedder(tmp_path: Path) -> None:
    assert "keyword index only" in (await findings(tmp_path, embedder="none"))["embedder"].detail


GRAPH = Path(__file__).parents[3] / "examples" / "knowledge_graph.json"


async def test_doctor_checks_a_configured_knowledge_graph(tmp_path: Path) -> None:
    assert "knowledge graph" not in await findings(tmp_path)
    found = (await findings(tmp_path, knowledge_graph=str(GRAPH)))["knowledge graph"]
    assert found.ok
    assert "functions" in found.detail
    (tmp_path / "broken.json").write_text("{")
    for place in (str(tmp_path / "broken.json"), "nowhere.json", f"http://127.0.0.1:{free_port()}"):
        found = (await findings(tmp_path, knowledge_graph=place))["knowledge graph"]
        assert (found.ok, "SLEUTH_KNOWLEDGE_GRAPH" in found.fix) == (False, True)


async def test_doctor_reports_a_newer_catalogue(tmp_path: Path) -> None:
    Catalogue(catalogue_url(tmp_path, None), owner="local", collection="default").close()
    assert (await findings(tmp_path))["catalogue"].detail == f"schema {SCHEMA_VERSION}, 0 documents in 'default'"
    with closing(sqlite3.connect(tmp_path / "catalogue.db")) as connection, connection:
        connection.execute("UPDATE sleuth_meta SET value = '99'")
    found = (await findings(tmp_path))["catalogue"]
    assert not found.ok
    assert "schema 99" in found.detail


async def test_doctor_reports_vectors_of_an_earlier_release(tmp_path: Path) -> None:
    catalogue = Catalogue(catalogue_url(tmp_path, None), owner="local", collection="default")
    for version in (1, 2):
        catalogue.set_embedder(EmbedderRecord(name="all-MiniLM-L6-v2", dimension=384, version=version))
        found = (await findings(tmp_path))["vectors"]
        assert (found.ok, found.fix) == ((True, "") if version == 2 else (False, "sleuth ingest --rebuild"))
    catalogue.close()


async def test_doctor_reports_invalid_databases(tmp_path: Path) -> None:
    (tmp_path / "chroma").mkdir()
    for file in (tmp_path / "catalogue.db", tmp_path / "chroma" / "chroma.sqlite3"):
        file.write_text("not a database at all, " * 100)
    found = await findings(tmp_path)
    assert (found["catalogue"].ok, found["Chroma"].ok) == (False, False)


async def test_doctor_reports_unreachable_servers(tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    found = await findings(
        tmp_path,
        chroma_url=f"http://{nowhere}",
        database_url=f"postgresql://{nowhere}/sleuth",
        embedder=f"http://{nowhere}/v1",
    )
    assert [found[name].ok for name in ("Chroma", "Postgres", "embedder")] == [False, False, False]
    assert all(found[name].fix for name in ("Chroma", "Postgres", "embedder"))


@pytest.mark.postgres
async def test_doctor_shows_the_version_of_postgres(tmp_path: Path, postgres_url: str) -> None:
    found = await findings(tmp_path, database_url=postgres_url)
    assert found["Postgres"].ok, found["Postgres"]
    assert found["Postgres"].detail.split(".")[0].isdigit()


@pytest.mark.nightly
@pytest.mark.vllm
async def test_doctor_shows_the_model_of_the_server(tmp_path: Path, vllm_url: str) -> None:
    found = await findings(tmp_path, model_url=vllm_url)
    assert found["model server"].ok
    assert "smollm2-135m-instruct (8192 tokens)" in found["model server"].detail
    absent = await findings(tmp_path, model_url=vllm_url, model="absent")
    assert not absent["model server"].ok
    assert "absent" in absent["model server"].detail


async def test_doctor_names_ignored_tracing_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    found = (await findings(tmp_path))["tracing"]
    assert (found.ok, found.detail) == (True, "off, no trace is sent anywhere; ignored: LANGSMITH_TRACING")
    assert "sent to LangSmith" in (await findings(tmp_path, tracing="langsmith"))["tracing"].detail
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://anna:secret@127.0.0.1:4318")
    spans = (await findings(tmp_path, tracing="otel"))["tracing"]
    assert spans.detail == "on: spans without texts are sent to 127.0.0.1:4318 (SLEUTH_TRACING)"
