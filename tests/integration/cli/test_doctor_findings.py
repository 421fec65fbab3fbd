"""Findings of `sleuth doctor` in real stores and servers."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sleuth.studio.cli.commands.doctor import Finding, examine, examine_duplicates
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine
from sleuth.tools.storage.schema import SCHEMA_VERSION


async def findings(home: Path, **changes: Any) -> dict[str, Finding]:
    settings = Settings(home=home, **{"model_url": f"http://{NOWHERE}/v1"} | changes)
    return {finding.name: finding for finding in await examine(settings)}


async def test_doctor_fresh_home_lacks_only_the_model_server(tmp_path: Path) -> None:
    found = await findings(tmp_path / "fresh")
    assert found["home"].ok
    assert "empty" in found["catalogue"].detail
    assert "knowledge graph" not in found
    assert (found["model server"].ok, found["model server"].fix) == (False, "sleuth model serve")
    assert not (tmp_path / "fresh").exists()  # looking makes nothing


async def test_doctor_names_near_duplicates_and_how_to_delete_them(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none")
    (nothing,) = await examine_duplicates(settings)
    assert (nothing.ok, nothing.fix) == (True, "")
    text = "The harbour bell of Dunvarrow was cast in 1871 by Bastian Oake, and hung in the Weighhouse."
    for name in ("bell.txt", "old bell.txt"):
        (tmp_path / name).write_text(text)
        await ingest([tmp_path / name], settings=settings)
    (found,) = await examine_duplicates(settings)
    assert (found.ok, found.detail) == (True, "bell.txt, 'old bell.txt': 100% alike")
    assert found.fix == "sleuth docs delete 'old bell.txt'"


NOWHERE = "127.0.0.1:9"
SPANS = "on: runs without texts are sent to 127.0.0.1:4318 (SLEUTH_TRACING)"


@pytest.mark.parametrize(
    ("name", "changes", "ok", "told"),
    [
        ("embedder", {"embedder": "none"}, True, "keyword index only"),
        *(
            ("embedder", {"embedder": name}, True, f"{name} is installed")
            for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
        ),
        ("knowledge graph", {"knowledge_graph": f"http://{NOWHERE}"}, False, "SLEUTH_KNOWLEDGE_GRAPH"),
        ("Chroma", {"chroma_url": f"http://{NOWHERE}"}, False, "chroma run"),
        ("catalogue", {"database_url": f"postgresql://{NOWHERE}/sleuth"}, False, "pg_isready"),
        ("embedder", {"embedder": f"http://{NOWHERE}/v1"}, False, "sleuth model install"),
        ("tracing", {}, True, "off, no trace is sent anywhere; ignored: LANGSMITH_TRACING"),
        ("tracing", {"tracing": "langsmith"}, True, "sent to LangSmith"),
        ("tracing", {"tracing": "otel"}, True, SPANS),
    ],
)
async def test_doctor_check(
    name: str, changes: dict[str, str], ok: bool, told: str, *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://anna:secret@127.0.0.1:4318")
    found = (await findings(tmp_path, **changes))[name]
    assert found.ok == ok
    assert told in (found.detail if ok else found.fix)


async def test_doctor_reports_a_newer_catalogue(tmp_path: Path) -> None:
    Catalogue(open_engine(catalogue_url(tmp_path, None)), owner="local", collection="default").close()
    assert (await findings(tmp_path))["catalogue"].detail == f"schema {SCHEMA_VERSION}, 0 documents in 'default'"
    with closing(sqlite3.connect(tmp_path / "catalogue.db")) as connection, connection:
        connection.execute("UPDATE sleuth_meta SET value = '99'")
    found = (await findings(tmp_path))["catalogue"]
    assert not found.ok
    assert "schema 99" in found.detail


async def test_doctor_reports_an_invalid_database(tmp_path: Path) -> None:
    (tmp_path / "catalogue.db").write_text("not a database at all, " * 100)
    found = (await findings(tmp_path))["catalogue"]
    assert not found.ok
    assert "The catalogue cannot be read: file is not a database. Check SLEUTH_HOME, or put a backup" in found.detail


@pytest.mark.nightly
@pytest.mark.vllm
async def test_doctor_shows_the_model_of_the_server(tmp_path: Path, vllm_url: str) -> None:
    found = await findings(tmp_path, model_url=vllm_url)
    assert found["model server"].ok
    assert "tiny-base (8192 tokens)" in found["model server"].detail
    absent = await findings(tmp_path, model_url=vllm_url, model="absent")
    assert not absent["model server"].ok
    assert "absent" in absent["model server"].detail
