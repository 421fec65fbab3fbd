"""`kill -9` of whole commands at evenly spread moments: the same command then finishes, and nothing stored is lost.

The operations of test_storage_kills.py are functions in a child; these are commands as they are typed, with the
processes that they start.
"""

import asyncio
import json
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_process import Done, killed, sleuth
from four_hops import QUESTION, InProcess, Shelf, four_hops
from hashing_embedder import HashingEmbedder
from scripted_backend import Scripted, proxying
from starlette.responses import JSONResponse, Response

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

KILLS = 30
"""Of one command."""
FILES, CHANGED, RUNS = 30, 12, 4
LONG_AGO = "2020-01-01T00:00:00+00:00"
QUESTIONS = Path(__file__).parents[3] / "examples" / "questions.jsonl"
EVALUATED = ("--methods", "plain-rag,par-rag", "--retrieval", "keyword,dense")


TIMES = ("command", "first_seconds", "p50_ms", "p95_ms")
EVALUATION = {"plan.json", "results.jsonl", "retrieval.jsonl", "runs.sqlite", "leases", "locks", "report.json", "report.md", "report.html"}


class Servers(Scripted):
    """A model, and an embedder at the same address."""

    async def say(self, method: str, path: str, body: bytes) -> Response:
        if path != "/v1/embeddings":
            return await super().say(method, path, body)
        rows = HashingEmbedder().embed_passages(json.loads(body)["input"])
        return JSONResponse({"data": [{"index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]})


@dataclass
class Hunt:
    """A command that is killed again and again, in a folder with a home; `turn` is the number of the next kill."""

    folder: Path
    url: str
    turn: int = -1
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.papers, self.home, self.temporary = (self.folder / name for name in ("papers", "home", "tmp"))
        self.papers.mkdir()
        self.temporary.mkdir()
        self.write(range(FILES))

    @property
    def environment(self) -> dict[str, str]:
        home = {"SLEUTH_HOME": str(self.home), "SLEUTH_EMBEDDER": f"{self.url}#hashing"}
        return {**home, "SLEUTH_MODEL_URL": self.url, "TMPDIR": str(self.temporary)}

    def write(self, numbers: range) -> None:
        for number in numbers:
            words = f"Person {number} built tower {number} in the year {1000 + self.turn}. " * 8
            (self.papers / f"paper-{number}.md").write_text(f"# Tower {number}\n\n{words}\n", encoding="utf-8")

    def texts(self) -> dict[str, str]:
        """The texts of the files by the ids of their documents."""
        return {path.name: path.read_text(encoding="utf-8") for path in self.papers.iterdir()}

    def documents(self) -> dict[str, str]:
        with closing(sqlite3.connect(self.home / "catalogue.db")) as connection:
            return dict(connection.execute("SELECT id, text FROM sleuth_documents"))

    async def run(self, *command: str | Path, **more: str) -> Done:
        done = await sleuth(*map(str, command), **self.environment | more)
        assert done.status == 0, (command, done)
        return done

    async def look(self, **more: str) -> tuple[list[str], int]:
        """Run commands that only read; they work, whatever was killed. Return the runs and the number of documents."""
        hits, runs, documents, _ = [
            (await self.run(*command, "--json", **more)).json()
            for command in (["search", "Who built tower 3?"], ["runs", "list"], ["docs", "list"], ["doctor"])
        ]
        assert hits[0]["document"] == "paper-3.md"
        return sorted(run["id"] for run in runs), len(documents)

    async def repeat(self, share: float) -> None:
        """Kill the command after this share of its duration, then run it again."""
        await self.prepare()
        before = await self.look()
        done = await killed(*map(str, self.command()), after=share * self.seconds, **self.environment)
        self.kills["killed" if done.status == -9 else "late"] += 1
        assert done.status in (-9, 0), done
        await self.check_killed(before)
        await self.run(*self.command())
        await self.check_done()
        self.check_left()
        print(self.turn, round(self.seconds, 2), dict(self.kills), flush=True)
        self.turn += 1

    async def measure(self) -> None:
        await self.run("ingest", self.papers)
        await self.ask()
        self.turn += 1
        await self.prepare()
        began = time.monotonic()
        await self.run(*self.command())
        self.seconds = time.monotonic() - began
        await self.check_done()
        self.turn += 1

    async def ask(self) -> None:
        async with open_store(Settings(home=self.home)) as store:
            runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
            for number in range(RUNS):
                id = await runs.start(QUESTION, "par-rag", thread=f"run-{self.turn}-{number}")
                await last_answer(runs.run(id))

    def check_left(self) -> None:
        """Check that nothing is left of the killed processes."""
        assert not list(self.temporary.iterdir())
        assert not list(self.home.glob("locks/*.json"))
        assert len(list(self.home.glob("leases/*"))) <= len(self.runs()) + 1
        assert len([path for path in self.home.glob("chroma/*") if path.is_dir()]) == 1
        for folder in self.home.glob("keywords/*"):
            kept = {"".join(each["segment_id"].split("-")) for each in json.loads((folder / "meta.json").read_text())["segments"]}
            found = {path.name.partition(".")[0] for path in folder.iterdir() if len(path.name.partition(".")[0]) == 32}
            assert found <= kept, found - kept

    def runs(self) -> list[str]:
        with closing(sqlite3.connect(self.home / "runs.sqlite")) as connection:
            return [id for (id,) in connection.execute("SELECT id FROM sleuth_threads")]


class Ingest(Hunt):
    """Files change, and others are new."""

    async def prepare(self) -> None:
        self.old = self.documents()
        self.write(range(CHANGED))
        self.write(range(FILES + self.turn, FILES + self.turn + 3))

    def command(self) -> list[Any]:
        return ["ingest", self.papers]

    async def check_killed(self, before: tuple[list[str], int]) -> None:
        found, new = self.documents(), self.texts()
        assert self.old.keys() <= found.keys()
        for id, text in found.items():
            assert text in (self.old.get(id), new[id]), id
        assert (await self.look())[0] == before[0]

    async def check_done(self) -> None:
        assert self.documents().keys() == self.texts().keys()
        text = f"in the year {1000 + self.turn}"
        assert all(text in self.documents()[f"paper-{number}.md"] for number in range(CHANGED))
        hits = (await self.run("search", f"Person 5 {1000 + self.turn}", "--json")).json()
        assert hits


class Sync(Ingest):
    """Files are removed too."""

    async def prepare(self) -> None:
        await super().prepare()
        for path in list(self.papers.iterdir()):
            if int(path.stem.partition("-")[2]) >= FILES and int(path.stem.partition("-")[2]) < FILES + self.turn - 3:
                path.unlink()

    def command(self) -> list[Any]:
        return ["sync", self.papers, "--yes"]

    async def check_killed(self, before: tuple[list[str], int]) -> None:
        found, new = self.documents(), self.texts()
        assert self.old.keys() & new.keys() <= found.keys()
        for id, text in found.items():
            assert text in (self.old.get(id), new.get(id)), id
        assert (await self.look())[0] == before[0]


class Backup(Hunt):
    async def prepare(self) -> None:
        self.file = self.folder / "backups" / f"{self.turn}.zip"
        self.file.parent.mkdir(exist_ok=True)

    def command(self) -> list[Any]:
        return ["backup", self.file]

    async def check_killed(self, before: tuple[list[str], int]) -> None:
        self.expected = before
        partial = self.file.with_name(f"{self.file.name}.partial") / "archive"
        if self.file.exists():
            await self.check_done()
            self.file.unlink()
        elif partial.exists():
            done = await sleuth("restore", str(partial), "--check", **self.environment)
            self.kills[f"partial, status {done.status}"] += 1
            assert done.status == 0 or "not a complete backup" in done.err, done
        assert await self.look() == before

    async def check_done(self) -> None:
        other = {"SLEUTH_HOME": str(self.folder / "other")}
        await self.run("restore", self.file, "--force", **other)
        assert await self.look(**other) == await self.look()
        assert not self.file.with_name(f"{self.file.name}.partial").exists()


class Prune(Hunt):
    """Checkpoints are removed and, every second time, runs."""

    async def prepare(self) -> None:
        await self.ask()
        with closing(sqlite3.connect(self.home / "runs.sqlite")) as connection, connection:
            old = f"run-{self.turn - 2}-%"
            connection.execute("UPDATE sleuth_threads SET updated_at = ? WHERE id LIKE ?", (LONG_AGO, old))

    def command(self) -> list[Any]:
        return ["runs", "prune", "--keep-last", "2", "--older-than", "30d", "--yes"]

    async def check_killed(self, before: tuple[list[str], int]) -> None:
        runs, documents = await self.look()
        assert documents == before[1]
        assert set(runs) <= set(before[0])
        assert {run for run in before[0] if not run.startswith(f"run-{self.turn - 2}-")} <= set(runs)
        for run in runs:
            await self.read(run)

    async def check_done(self) -> None:
        runs, _ = await self.look()
        assert set(runs) == {f"run-{turn}-{n}" for turn in (self.turn - 1, self.turn) for n in range(RUNS)}
        for run in runs:
            await self.read(run)
            assert len((await self.run("runs", "history", run, "--json")).json()) <= 3

    async def read(self, run: str) -> None:
        shown = (await self.run("runs", "show", run, "--json")).json()
        assert shown["status"] == "answered", shown
        await self.run("runs", "export", run)


class Eval(Hunt):
    expected = None

    async def prepare(self) -> None:
        self.out, self.questions = self.folder / "out" / str(self.turn), self.folder / "questions.jsonl"
        rows = [
            {"id": f"q{n}", "question": f"Who built tower {n}?", "answer": f"Person {n}", "gold_ids": [f"paper-{n}.md"]}
            for n in range(6)
        ]
        self.questions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def command(self) -> list[Any]:
        return ["eval", self.questions, *EVALUATED, "--simulate", "reader=0.1", "--out", self.out]

    async def check_killed(self, before: tuple[list[str], int]) -> None:
        file = self.out / "results.jsonl"
        self.rows = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        self.rows = [row for row in self.rows if row.endswith(b"\n")]
        self.kills[f"{len(self.rows)} rows"] += 1
        assert await self.look() == before

    async def check_done(self) -> None:
        assert (self.out / "results.jsonl").read_bytes().startswith(b"".join(getattr(self, "rows", [])))
        report = comparable(json.loads((self.out / "report.json").read_text(encoding="utf-8")))
        self.expected = self.expected or report
        assert report == self.expected
        assert {path.name for path in self.out.iterdir()} == EVALUATION
        shutil.rmtree(self.out)


def comparable(report: Any) -> Any:
    """A report without its command and its times."""
    if isinstance(report, list):
        return [comparable(each) for each in report]
    if not isinstance(report, dict):
        return report
    return {name: comparable(each) for name, each in report.items() if name not in TIMES}


HUNTS = (Ingest, Sync, Backup, Prune, Eval)


async def hunt(kind: type[Hunt], folder: Path, kills: int) -> Hunt:
    async with proxying(Servers(four_hops)) as proxy:
        found = kind(folder, proxy.url)
        await found.measure()
        for number in range(kills):
            await found.repeat((number + 0.5) / kills)
    return found


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", HUNTS)
async def test_command_finishes_after_thirty_kills(kind: type[Hunt], tmp_path: Path) -> None:
    found = await hunt(kind, tmp_path, int(__import__("os").environ.get("K", KILLS)))
    print(found.kills)
