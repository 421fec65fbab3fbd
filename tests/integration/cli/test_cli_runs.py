"""The command line from outside: exit status, what goes where, and a line or two for every mistake."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cli_process import Done, sleuth
from four_hops import QUESTION, four_hops
from hashing_embedder import HashingEmbedder
from process import free_port
from scripted_backend import Scripted, proxying

from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search.vectors.embedder import make_embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
BY_WORDS = ("--set", "coarse_mode=keyword", "--set", "fine_mode=keyword")
"""Search without vectors: these tests are not about embedding."""


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Yield a store with the example corpus; its vectors are fake but have the default embedder's name."""
    settings = Settings(home=tmp_path_factory.mktemp("cli") / "home")
    named = HashingEmbedder(make_embedder(settings).name)
    assert (await ingest([CORPUS], settings=settings, embedder=named)).failed == 0
    return settings.home


@pytest.fixture
async def env(home: Path) -> AsyncIterator[dict[str, str]]:
    """Return the environment of a working command, with a model server."""
    async with proxying(Scripted(four_hops, slower=0.1)) as proxy:
        yield {"SLEUTH_HOME": str(home), "SLEUTH_MODEL_URL": proxy.url}


def assert_explained(done: Done, status: int, *told: str) -> None:
    """Assert the status, an empty standard output, and a short message with these texts."""
    assert done.status == status, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert 1 <= len(done.err.strip().splitlines()) <= 2, done.err
    for words in told:
        assert words in done.err


async def test_ask_history_and_fork(env: dict[str, str]) -> None:
    asked = await sleuth("ask", QUESTION, "--method", "par-rag", "--thread", "first", *BY_WORDS, "--json", **env)
    assert asked.status == 0, asked.err
    answer = asked.json()
    assert (answer["thread"], answer["status"], answer["text"]) == ("first", "answered", "the fair at Brindlecote")
    assert "● plan" in asked.err
    assert {"checkpoint", "method", "question", "citations", "notes", "cost", "warnings"} <= answer.keys()
    listed, shown, history, exported = await asyncio.gather(
        sleuth("runs", "list", "--json", **env),
        sleuth("runs", "show", "first", "--json", **env),
        sleuth("runs", "history", "first", "--json", **env),
        sleuth("runs", "export", "first", **env),
    )
    assert {"first": "done"}.items() <= {run["id"]: run["state"] for run in listed.json()}.items()
    assert shown.json() == answer
    moments = history.json()
    assert moments[0].keys() == {"checkpoint", "parent", "step", "node", "next", "at", "changed", "source"}
    assert exported.json()["thread"]["id"] == "first"
    forked = (await sleuth("runs", "fork", "first", "--at", moments[5]["checkpoint"], "--json", **env)).json()
    assert forked.keys() == {"thread", "checkpoint"}
    resumed = (await sleuth("resume", "first", "--json", **env)).json()
    assert (resumed["text"], resumed["notes"]) == (answer["text"], answer["notes"])
    assert resumed["checkpoint"] != answer["checkpoint"]
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    assert (await sleuth("resume", "first", "--json", **env | {"SLEUTH_MODEL_URL": nobody})).json() == resumed
    assert_explained(
        await sleuth("ask", QUESTION, "--thread", "first", **env), 1, "used already", "sleuth resume first"
    )
    unknown = await sleuth("runs", "fork", "first", "--at", moments[5]["checkpoint"][:-1] + "x", "--json", **env)
    assert_explained(unknown, 2, "checkpoint", f"Did you mean {moments[5]['checkpoint']}")
    assert_explained(await sleuth("resume", "frist", "--json", **env), 2, "Did you mean first")


async def test_every_command_prints_one_json_value(env: dict[str, str]) -> None:
    commands: list[tuple[str, ...]] = [
        ("methods",),
        ("docs", "list"),
        ("docs", "show", "brindlecote.md"),
        ("search", "Which fair is held?", "--mode", "keyword"),
        ("search", "Which fair is held?", "--where", "path:corpus/** language=en date>=2000"),
        ("docs", "list", "--where", "!language=en"),
        ("search", "Which fair is held?", "--mode", "graph", "--explain"),
        ("model", "status"),
    ]
    alone = await sleuth("runs", "prune", "--older-than", "30d", "--json", **env)  # it needs the store exclusively
    unembedded = env | {"SLEUTH_EMBEDDER": "none"}  # the store's vectors are no model's
    together = await asyncio.gather(*(sleuth(*command, "--json", **unembedded) for command in commands))
    for done in (alone, *together):
        assert done.status == 0, done.err
        assert done.json() is not None


COLUMNS = json.dumps([{"name": "end", "question": "When does it end?"}] * 2)
MISTAKES: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "empty question": (("ask", "  "), 2, ("empty",)),
    "gigantic question": (("ask", "why " * 25_000), 2, ("99,999 characters", "sleuth ingest")),
    "unknown method": (("ask", QUESTION, "--method", "par-arg"), 2, ("Did you mean par-rag?",)),
    "setting out of range": (
        ("ask", QUESTION, "--method", "par-rag", "--set", "coarse_k=0"),
        2,
        ("coarse_k", "greater than or equal to 1"),
    ),
    "unknown thread": (("resume", "nowhere"), 2, ("no thread 'nowhere'", "sleuth runs list")),
    "unknown document": (("docs", "show", "brindlecot.md"), 2, ("Did you mean brindlecote.md?",)),
    "filter that matches nothing": (("ask", QUESTION, "--where", "tag=none"), 2, ("No document matches", "docs list")),
    "nothing to explain": (("search", "fair", "--mode", "keyword", "--explain"), 2, ("--mode graph",)),
    "nothing to read": (("ingest", "/no/such/folder"), 2, ("/no/such/folder",)),
    "nothing where a path should be": (("ingest", ""), 2, ("One of the paths is empty",)),
    "a name that no address can hold": (("ask", QUESTION, "--thread", "../mine"), 2, ("letters, digits", "'../mine'")),
    "survey without a question": (("survey",), 2, ("Give a question",)),
    "table of an unknown format": (("survey", "?", "--out", "table.doc"), 2, (".csv, .xlsx, .md, .json",)),
    "missing file of columns": (("survey", "?", "--columns", "missing.toml"), 2, ("cannot be read",)),
    "columns of one name": (("survey", "?", "--set", f"columns={COLUMNS}"), 2, ("same name",)),
    "report of an unknown format": (("report", "?", "--out", "report.pdf"), 2, (".md, .html, .docx",)),
    "report by a survey": (("report", "?", "--method", "survey"), 2, ("method",)),
    "bytes of another encoding": (("ask", "Wer war J\udcfcrgen?"), 2, ("UTF-8", "terminal")),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_usage_error_is_explained(env: dict[str, str], mistake: str) -> None:
    arguments, status, told = MISTAKES[mistake]
    assert_explained(await sleuth(*arguments, "--json", **env), status, *told)


async def test_environment_errors_are_explained(env: dict[str, str], tmp_path: Path) -> None:
    ask = ("ask", QUESTION, "--json")
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    down, schemeless, other, empty, strange = await asyncio.gather(
        sleuth(*ask, "--method", "par-rag", **env | {"SLEUTH_MODEL_URL": nobody}),
        sleuth(*ask, **env | {"SLEUTH_MODEL_URL": "localhost:8000"}),
        sleuth(*ask, **env | {"SLEUTH_EMBEDDER": "another-one"}),
        sleuth(*ask, **env | {"SLEUTH_HOME": str(tmp_path / "new")}),
        sleuth(*ask, **env | {"SLEUTH_PROFILE": "papers"}),
    )
    assert_explained(down, 1, nobody, "sleuth model serve")
    assert_explained(schemeless, 2, "SLEUTH_MODEL_URL")
    assert_explained(other, 1, "all-MiniLM-L6-v2", "another-one", "--rebuild")
    assert_explained(empty, 2, "no documents yet", "sleuth ingest PATH")
    assert_explained(strange, 2, "SLEUTH_PROFILE")


async def test_locked_store_names_the_holder(env: dict[str, str], home: Path) -> None:
    env = {**env, "SLEUTH_WAIT": "2"}
    async with hold(home, "alone", command="sleuth ingest --rebuild"):
        ask, prune, listed = await asyncio.gather(
            sleuth("ask", QUESTION, "--json", **env),
            sleuth("runs", "prune", "--keep-last", "1", "--yes", "--json", **env),
            sleuth("runs", "list", "--json", **env),
        )
    assert_explained(ask, 1, "`sleuth ingest --rebuild` (process ")
    assert_explained(prune, 1, "`sleuth ingest --rebuild` (process ")
    assert listed.status == 0


async def test_run_stopped_by_ctrl_c_can_be_resumed(env: dict[str, str]) -> None:
    """Use the real executable, as a shell starts it."""
    command = Path(sys.executable).parent / "sleuth"
    arguments: list[Any] = ["ask", QUESTION, "--method", "par-rag", "--thread", "stopped", *BY_WORDS, "--json"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(command, *arguments, env=env, stdout=pipe, stderr=pipe)
    assert process.stderr
    seen = ""
    while "● draft" not in seen:
        line = (await process.stderr.readline()).decode()
        assert line, f"it ended early: {seen}"
        seen += line
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == 130
    assert out == b""
    assert "sleuth resume stopped" in err.decode()
    assert "Traceback" not in err.decode()
    shown = await sleuth("runs", "show", "stopped", "--json", **env)
    assert_explained(shown, 1, "is stopped and has no answer yet", "sleuth resume stopped")
    (row,) = [row for row in (await sleuth("runs", "list", "--json", **env)).json() if row["id"] == "stopped"]
    assert row["state"] == "stopped"
    resumed = await sleuth("resume", "stopped", "--json", **env)
    assert resumed.json()["text"] == "the fair at Brindlecote"
