"""Reading stored values: the types of checkpoints and no others, and no code of a file's choice."""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import malicious
import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send
from scenes import finish

from sleuth.graphs.persistence.checkpoints import CheckpointSerializer
from sleuth.graphs.runs.execution import compile_method
from sleuth.graphs.runs.history import export_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.studio.langgraph_dev.checkpointer import saver
from sleuth.tools.errors import StoreDamaged, StoreError
from sleuth.tools.settings import Settings

READ = [
    None,
    {"notes": {"1": [1, 2.5, "Kestrow", True, None]}, 7: b"seven"},
    _DeltaSnapshot({"1": "Kestrow"}),
    [HumanMessage("Which?", id="1"), AIMessage("The light.", id="2"), RemoveMessage(id="1")],
    [SystemMessage("Be brief."), ToolMessage("812", tool_call_id="t")],
    (Interrupt(value={"question": "Which light?"}, id="i"),),
    Send("retrieve", {"step": "1"}),
]

Reading = Callable[[RunService, str], Awaitable[Any]]
READINGS: dict[str, Reading] = {
    "history": list_checkpoints,
    "show": RunService.answer,
    "export": export_run,
    "resume": finish,
}


@pytest.mark.parametrize("value", READ, ids=lambda value: type(value).__name__)
def test_serializer_returns_every_type_that_checkpoints_contain(value: object) -> None:
    serde = CheckpointSerializer()
    found = serde.loads_typed(serde.dumps_typed(value))
    assert found == (list(value) if isinstance(value, tuple) and not isinstance(value, _DeltaSnapshot) else value)


def test_serializer_returns_a_stored_exception_as_text() -> None:
    serde = CheckpointSerializer()
    assert serde.loads_typed(serde.dumps_typed(StoreError("gone"))) == "StoreError('gone')"


@pytest.mark.parametrize("name", malicious.NAMES)
def test_serializer_refuses_a_value_that_names_code(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(StoreDamaged):
        CheckpointSerializer().loads_typed(malicious.values(marker)[name])
    assert not marker.exists()


def test_serializer_names_the_type_it_refuses(tmp_path: Path) -> None:
    channels = {"values": Path("/etc")}
    checkpoint = {"id": "1f0a", "channel_values": channels, "channel_versions": {}, "versions_seen": {}}
    stored = JsonPlusSerializer().dumps_typed(checkpoint)
    with pytest.raises(StoreDamaged, match=r"A value has the type pathlib\.PosixPath.* not loaded"):
        CheckpointSerializer().loads_typed(stored)


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\x01", b"\xc7\x01\x05\x00", b"\xd4\x02\x01"])
def test_serializer_names_a_body_that_is_not_msgpack(body: bytes) -> None:
    with pytest.raises(StoreDamaged, match=r"cannot be decoded|unknown format"):
        CheckpointSerializer().loads_typed(("msgpack", body))


def test_serializer_survives_a_value_nested_a_thousand_times() -> None:
    body = ormsgpack.packb(1)
    for _ in range(3_000):
        body = ormsgpack.packb(ormsgpack.Ext(7, body))
    with pytest.raises(StoreDamaged):
        CheckpointSerializer().loads_typed(("msgpack", body))


@pytest.fixture
def finished(settings: Settings, finished_home: Path) -> str:
    """Return the name of a finished run in the home of the settings; comes before `runs`, which opens that home."""
    shutil.copytree(finished_home, settings.home)
    return "bad"


def change(file: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(file)
    with connection:
        assert connection.execute(statement, values).rowcount
    connection.close()


LATEST = "WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"


@pytest.mark.parametrize(
    ("statement", "readings"),
    [
        (f"UPDATE checkpoints SET type = ?, checkpoint = ? {LATEST}", READINGS.values()),
        ("UPDATE writes SET type = ?, value = ? WHERE channel = 'notes'", [list_checkpoints]),
    ],
    ids=["checkpoint", "write"],
)
async def test_malicious_value_executes_nothing(
    finished: str, runs: RunService, tmp_path: Path, statement: str, readings: Iterable[Reading]
) -> None:
    marker = tmp_path / "ran"
    change(tmp_path / "home" / "runs.sqlite", statement, *malicious.values(marker)[malicious.NAMES[0]])
    for read in readings:
        with pytest.raises(StoreDamaged):
            await read(runs, finished)
    assert not marker.exists()


async def test_development_server_executes_no_stored_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLEUTH_HOME", str(tmp_path))
    marker, place = tmp_path / "ran", {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    async with saver() as kept:
        await compile_method("plain-rag", kept).aupdate_state(place, {"question": "Which?"}, as_node="__start__")
    stored = malicious.values(marker)[malicious.NAMES[0]]
    change(tmp_path / "studio-checkpoints.sqlite", "UPDATE checkpoints SET type = ?, checkpoint = ?", *stored)
    async with saver() as kept:
        with pytest.raises(StoreDamaged):
            await compile_method("plain-rag", kept).aget_state(place)
    assert not marker.exists()
