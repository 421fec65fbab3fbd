"""The archive for issue reports: no secret and no text of documents, questions, names or addresses gets into it."""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest
from entries import entry
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.graphs.persistence import open_store
from sleuth.graphs.runs import RunService
from sleuth.studio.cli.doctor_checks import Finding, examine
from sleuth.studio.cli.support_bundle import mask, summarize_log, write_bundle
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Catalogue, sqlite_url

MARK = "zqx"
"""Begins every planted text; nothing else contains it."""

WORDS = st.text(alphabet="abcdefghij0123456789-", min_size=3, max_size=20).map(lambda text: MARK + text)


def members(file: Path) -> dict[str, str]:
    with ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


async def fill(chosen: Settings, word: str) -> None:
    catalogue = Catalogue(sqlite_url(chosen.home / "catalogue.db"), owner=chosen.owner, collection=chosen.collection)
    catalogue.put_documents([entry(f"{word}-id", f"{word} is a text", title=f"{word} title", source=f"/{word}/file")])
    catalogue.close()
    async with open_store(chosen) as store:
        await RunService(store).start(f"Who is {word}?", "plain-rag", thread=f"{word}-thread"[:90])


@given(word=WORDS)
@settings(max_examples=6, deadline=None)
def test_nothing_planted_gets_into_the_archive(word: str) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder) / f"{word}-home"
        home.mkdir()
        chosen = Settings(
            home=home,
            owner=f"{word}-owner",
            operator=f"{word}-operator",
            collection=f"{word}-collection",
            model=f"{word}-model",
            models={"drafter": f"{word}-drafter"},
            model_key=f"{word}-key",
            api_keys=f"anna:{word}-secret",
            model_url=f"http://{word.rstrip('-')}.invalid:8000/v1",
            knowledge_graph=str(home / "graph.json"),
            embedder="none",
        )
        (home / "graph.json").write_text(json.dumps({"entities": [f"{word} the person"], word: [1]}))
        log = home / "serve.log"
        log.write_text(
            json.dumps({"at": "2026-01-01T00:00:00.000Z", "message": f"{word} failed", "owner": word, "status": 500})
            + f"\n{json.dumps({'level': 'error', 'traceback': f'ValueError: {word}', 'thread': word, 'route': word})}"
            + f"\nERROR 01-01 00:00:00 [engine.py:7] {word}\n"
        )
        asyncio.run(fill(chosen, word))
        findings = asyncio.run(examine(chosen))
        findings.append(Finding(name="planted", ok=False, detail=f"{home}/x: input_value='{word}' of {chosen.owner}"))
        write_bundle(home / "bundle.zip", chosen, findings, log)
        found = members(home / "bundle.zip")
        assert not [name for name, text in found.items() if MARK in text]
        assert [each.get("status") for each in json.loads(found["log.json"])] == [500, None]
        rows = json.loads(found["rows.json"])
        assert rows["catalogue"]["sleuth_documents"] == rows["runs"]["sleuth_threads"] == 1


SCALARS = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(lines=st.lists(st.text() | JSON.map(json.dumps)))
def test_any_log_can_be_summarized(lines: list[str]) -> None:
    json.dumps([*summarize_log(lines)])


REQUEST = {"at": "2026-01-01T00:00:00.000Z", "level": "info", "status": 200, "route": "/v1/runs/{thread}"}
CRASH = 'Traceback:\n  File "/srv/anna/sleuth/studio/app.py", line 7, in run\n    secret()\nValueError: a text'
PLACE = {"errors": ["ValueError"], "frames": ["sleuth/studio/app.py:7 run"]}


@pytest.mark.parametrize(
    ("line", "kept"),
    [({**REQUEST, "message": "request", "owner": "anna"}, REQUEST), ({"traceback": CRASH, "thread": "anna"}, PLACE)],
)
def test_log_line_keeps_numbers_and_places(line: dict[str, Any], kept: dict[str, Any]) -> None:
    assert [*summarize_log([json.dumps(line)])] == [kept]


def test_mask_keeps_what_helps() -> None:
    chosen = Settings(home=Path("/srv/data"), model_url="http://gpu.example:8000/v1")
    assert mask("schema 3, 12 documents in 'default'", chosen) == "schema 3, 12 documents in '…'"
    assert mask("/srv/data, 12 GiB free", chosen) == "HOME, 12 GiB free"
    assert mask("http://gpu.example:8000/v1 does not answer (timeout)", chosen) == "PATH does not answer (timeout)"


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_bundle(tmp_path / "bundle.zip", Settings(home=tmp_path), [], None)
    with pytest.raises(UsageError, match="cannot be read"):
        write_bundle(tmp_path / "other.zip", Settings(home=tmp_path), [], tmp_path / "missing.log")
    assert (tmp_path / "bundle.zip").read_text() == "mine"
