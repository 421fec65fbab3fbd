"""`kill -9` of whole commands at evenly spread moments: the same command then finishes, and nothing stored is lost.

The operations of test_storage_kills.py are functions in a child; these are commands as they are typed, with the
processes that they start.
"""

import json
import shutil
import sqlite3
import time
from abc import abstractmethod
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_process import Done, killed, sleuth
from four_hops import QUESTION, InProcess, Shelf, four_hops
from hashing_embedder import HashingEmbedder
from scripted_backend import Scripted, proxying
from starlette.responses import JSONResponse, Response

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

KILLS = 30
"""Of one command."""
FILES, CHANGED, NEW, RUNS, QUESTIONS = 30, 12, 3, 4, 6
LONG_AGO = "2020-01-01T00:00:00+00:00"
VARYING = ("command", "first_seconds", "p50_ms", "p95_ms")
"""What differs between reports of the same evaluation."""
EVALUATION = {"leases", "locks", "plan.json", "report.html", "report.json", "results.jsonl"}
EVALUATION |= {"retrieval.jsonl", "runs.sqlite"}

State = tuple[list[str], int]
"""The runs, and the number of documents."""


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
    turn: int = 0
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.papers, self.home, self.temporary = (self.folder / name for name in ("papers", "home", "tmp"))
        self.papers.mkdir()
        self.temporary.mkdir()
        self.environment = {
            "SLEUTH_HOME": str(self.home),
            "SLEUTH_EMBEDDER": f"{self.url}#hashing",
            "SLEUTH_MODEL_URL": self.url,
            "TMPDIR": str(self.temporary),
        }

    @abstractmethod
    async def prepare(self) -> None:
        """Make something to do for the command of this turn."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    async def check_killed(self, before: State) -> None:
        """Check that nothing is lost that was stored, and that commands which read work."""

    @abstractmethod
    async def check_done(self) -> None:
        """Check the result of the command."""

    async def measure(self) -> None:
        """Fill the home, and take the time of the command."""
        self.write(range(FILES))
        await self.run("ingest", str(self.papers))
        await self.ask()
        self.turn += 1
        await self.prepare()
        began = time.monotonic()
        await self.run(*self.command())
        self.seconds = time.monotonic() - began
        await self.check_done()
        self.turn += 1

    async def repeat(self, share: float) -> None:
        """Kill the command after this share of its duration, then run it again."""
        await self.prepare()
        before = await self.look()
        done = await killed(*self.command(), after=share * self.seconds, **self.environment)
        assert done.status in (-9, 0), done
        self.kills["killed" if done.status else "late"] += 1
        await self.check_killed(before)
        await self.run(*self.command())
        await self.check_done()
        self.check_left()
        self.turn += 1

    async def run(self, *command: str, **more: str) -> Done:
        done = await sleuth(*command, **self.environment | more)
        assert done.status == 0, (command, done)
        return done

    async def look(self, **more: str) -> State:
        """Run commands that only read."""
        hits, runs, documents = [
            (await self.run(*command, "--json", **more)).json()
            for command in (["search", "Who built tower 3?"], ["runs", "list"], ["docs", "list"])
        ]
        assert hits[0]["document"] == "paper-3.md"
        findings = (await sleuth("doctor", "--json", **self.environment | more)).json()
        failed = [each for each in findings if not each["ok"] and "no answer within" not in each["detail"]]
        assert not failed, failed
        return sorted(run["id"] for run in runs), len(documents)

    def write(self, numbers: range) -> None:
        for number in numbers:
            words = f"Person {number} built tower {number} in the year {1000 + self.turn}. " * 8
            (self.papers / f"paper-{number}.md").write_text(f"# Tower {number}\n\n{words}\n", encoding="utf-8")

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.papers.iterdir()}

    def documents(self) -> dict[str, str]:
        return dict(self.rows("catalogue.db", "SELECT id, text FROM sleuth_documents"))

    def rows(self, database: str, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.home / database)) as connection:
            return connection.execute(query).fetchall()

    async def ask(self) -> None:
        async with open_store(Settings(home=self.home)) as store:
            runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
            for number in range(RUNS):
                id = await runs.start(
                    RunRequest(question=QUESTION, method="par-rag", thread=f"run-{self.turn}-{number}")
                )
                await last_answer(runs.run(id))

    def check_left(self) -> None:
        """Check that nothing stays of killed processes, which would grow."""
        assert not list(self.temporary.iterdir())
        assert not list(self.home.glob("locks/*.json"))
        runs = self.rows("runs.sqlite", "SELECT id FROM sleuth_threads")
        assert len(list(self.home.glob("leases/*"))) <= len(runs) + 1
        assert len([path for path in self.home.glob("chroma/*") if path.is_dir()]) == 1
        [keywords] = self.home.glob("keywords/*")
        segments = json.loads((keywords / "meta.json").read_text(encoding="utf-8"))["segments"]
        kept = {each["segment_id"].replace("-", "") for each in segments}
        found = {path.name.partition(".")[0] for path in keywords.iterdir()}
        assert {name for name in found if len(name) == 32} <= kept


class Ingest(Hunt):
    """Files change, and others are new."""

    async def prepare(self) -> None:
        self.old = self.documents()
        self.write(range(CHANGED))
        self.write(range(FILES + self.turn * NEW, FILES + self.turn * NEW + NEW))

    def command(self) -> list[str]:
        return ["ingest", str(self.papers)]

    async def check_killed(self, before: State) -> None:
        found, new = self.documents(), self.files()
        assert self.old.keys() & new.keys() <= found.keys()
        assert not [id for id, text in found.items() if text not in (self.old.get(id), new.get(id))]
        assert (await self.look())[0] == before[0]

    async def check_done(self) -> None:
        assert self.documents() == self.files()
        hits = (await self.run("search", f"tower 5 year {1000 + self.turn}", "--mode", "keyword", "--json")).json()
        assert f"{1000 + self.turn}" in hits[0]["text"]


class Sync(Ingest):
    """Files are removed too."""

    async def prepare(self) -> None:
        await super().prepare()
        for number in range(FILES + (self.turn - 2) * NEW, FILES + (self.turn - 1) * NEW):
            (self.papers / f"paper-{number}.md").unlink(missing_ok=number < FILES + NEW)

    def command(self) -> list[str]:
        return ["sync", str(self.papers), "--yes"]


class Backup(Hunt):
    """Each archive has a name of its own; it is restored into another home."""

    async def prepare(self) -> None:
        (self.folder / "backups").mkdir(exist_ok=True)
        self.file = self.folder / "backups" / f"{self.turn}.zip"

    def command(self) -> list[str]:
        return ["backup", str(self.file)]

    async def check_killed(self, before: State) -> None:
        partial = self.file.with_name(f"{self.file.name}.partial") / "archive"
        if self.file.exists():
            await self.check_done()
            self.file.unlink()
        elif partial.exists():
            done = await sleuth("restore", str(partial), "--check", **self.environment)
            assert done.status == 0 or "not a complete backup" in done.err, done
            self.kills["partial archive refused" if done.status else "partial archive whole"] += 1
        assert await self.look() == before

    async def check_done(self) -> None:
        other = {"SLEUTH_HOME": str(self.folder / "other")}
        await self.run("restore", str(self.file), "--force", **other)
        assert await self.look(**other) == await self.look()
        assert len(list(self.file.parent.iterdir())) == self.turn


class Prune(Hunt):
    """Checkpoints are removed, and the runs of the turn before the last one."""

    async def prepare(self) -> None:
        await self.ask()
        with closing(sqlite3.connect(self.home / "runs.sqlite")) as connection, connection:
            old = f"run-{self.turn - 2}-%"
            connection.execute("UPDATE sleuth_threads SET updated_at = ? WHERE id LIKE ?", (LONG_AGO, old))

    def command(self) -> list[str]:
        return ["runs", "prune", "--keep-last", "2", "--older-than", "30d", "--yes"]

    async def check_killed(self, before: State) -> None:
        runs, documents = await self.look()
        assert documents == before[1]
        assert set(self.recent()) <= set(runs) <= set(before[0])
        for run in runs:
            await self.read(run)

    async def check_done(self) -> None:
        runs, _ = await self.look()
        assert runs == sorted(self.recent())
        for run in runs:
            await self.read(run)
            assert len((await self.run("runs", "history", run, "--json")).json()) <= 3
        threads = self.rows("runs.sqlite", "SELECT DISTINCT thread_id FROM checkpoints")
        assert {thread for (thread,) in threads} == set(runs)

    def recent(self) -> list[str]:
        return [f"run-{turn}-{number}" for turn in (self.turn - 1, self.turn) for number in range(RUNS)]

    async def read(self, run: str) -> None:
        assert (await self.run("runs", "show", run, "--json")).json()["status"] == "answered"
        await self.run("runs", "export", run)


class Eval(Hunt):
    """Each turn has a folder of its own; the reports are the same."""

    expected: Any = None

    async def prepare(self) -> None:
        self.out, self.questions, self.written = self.folder / f"out-{self.turn}", self.folder / "questions.jsonl", b""
        rows = [
            {"id": f"q{n}", "question": f"Who built tower {n}?", "answer": f"Person {n}", "gold_ids": [f"paper-{n}.md"]}
            for n in range(QUESTIONS)
        ]
        self.questions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def command(self) -> list[str]:
        systems = ["--methods", "plain-rag", "--retrieval", "keyword", "--simulate", "reader=0.1"]
        return ["training.simulation", str(self.questions), *systems, "--out", str(self.out)]

    async def check_killed(self, before: State) -> None:
        file = self.out / "results.jsonl"
        self.written = file.read_bytes() if file.exists() else b""
        self.written = self.written[: self.written.rfind(b"\n") + 1]
        self.kills["with results"] += bool(self.written)
        assert await self.look() == before

    async def check_done(self) -> None:
        assert (self.out / "results.jsonl").read_bytes().startswith(self.written)
        report = comparable(json.loads((self.out / "report.json").read_text(encoding="utf-8")))
        self.expected = self.expected or report
        assert report == self.expected
        assert {path.name for path in self.out.iterdir()} == EVALUATION
        shutil.rmtree(self.out)


def comparable(report: Any) -> Any:
    """Return a report without its command and its times."""
    if isinstance(report, list):
        return [comparable(each) for each in report]
    if isinstance(report, dict):
        return {name: comparable(each) for name, each in report.items() if name not in VARYING}
    return report


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    "kills", [pytest.param(1, marks=pytest.mark.nightly), pytest.param(KILLS, marks=pytest.mark.faults)]
)
@pytest.mark.parametrize("kind", [Ingest, Sync, Backup, Prune, Eval])
async def test_killed_command_finishes(kind: type[Hunt], kills: int, tmp_path: Path) -> None:
    async with proxying(Servers(four_hops)) as proxy:
        hunt = kind(tmp_path, proxy.url)
        await hunt.measure()
        for number in range(kills):
            await hunt.repeat((number + 0.5) / kills)
    assert hunt.kills["killed"] or kills == 1
