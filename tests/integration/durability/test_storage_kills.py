"""`kill -9` at random moments of writing: acknowledged data survives, and catalogue and indexes agree afterwards.

A scenario applies a sequence of operations to one store. Each one is killed, and the next start is checked.
"""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import index_contents
import kill as kills
import pytest
from four_hops import InProcess, Shelf
from hashing_embedder import HashingEmbedder
from postgres_fixture import database
from sqlalchemy import text as sql
from storage_operations import Done, Operation, being, execute, release_of

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.persistence.tables import CHECKPOINT_TABLES
from sleuth.graphs.runs.history import export_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.index_set import ALL, IndexSet
from sleuth.tools.settings import Settings
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = pytest.mark.postgres

SCENARIOS = 40
KILLS = 25
"""Of one scenario."""
KINDS = ("put", "read", "delete", "rebuild", "migrate", "ask", "thin_out", "remove")
OF_DOCUMENTS, OF_RUNS = ("delete", "migrate"), ("thin_out", "remove")
"""Operations on existing data."""
POOL = 30
LOOKED_FOR = 5
RUNS = 3
PLACES = [(False, False), (True, False), (False, True), (True, True)]
"""Whether the catalogue and the runs are in Postgres, and the vectors on Chroma's server."""

Texts = tuple[str, ...]


@dataclass
class Scenario:
    """A store, its expected contents, the seconds that its operations take, and the first operations."""

    settings: Settings
    random: Random
    seconds: dict[str, float]
    first: list[str] = field(default_factory=list)
    documents: dict[str, Texts] = field(default_factory=dict)
    runs: dict[str, datetime] = field(default_factory=dict)
    release: int = 0
    expected: dict[str, Any] | None = None
    kills: Counter[str] = field(default_factory=Counter)
    late: int = 0
    turn: int = 0

    async def step(self) -> None:
        """Start one operation, kill it, and check the store."""
        self.turn += 1
        due = [kind for kind in KINDS if self._is_due(kind)]
        kind = self.first.pop(0) if self.first else self.random.choice(due)
        began, operation = datetime.now(UTC), self._operation(kind)
        self.release = operation.release
        measured = self.seconds.get(kind)
        if measured is None or operation.die_at:
            done = await execute(operation)
        else:
            done = await execute(operation, kill_after=self.random.uniform(0.0, measured * 1.1))
        if done.whole:
            self.seconds[kind] = done.seconds
            self.late += 1
        else:
            self.kills[kind] += 1
        if kind == "migrate":
            self._check_release(done)
        with being(self.release):
            self._check_documents(operation, done)
            if kind in ("ask", "thin_out", "remove", "migrate"):
                await self._check_runs(operation, done, began)

    def _is_due(self, kind: str) -> bool:
        return bool(self.documents) if kind in OF_DOCUMENTS else bool(self.runs) if kind in OF_RUNS else True

    def _operation(self, kind: str) -> Operation:
        texts: dict[str, Texts] = {}
        names: tuple[str, ...] = ()
        file = None
        if kind == "put":
            kept = self.random.sample(range(POOL), 6)
            texts = {f"d{n}" if n % 2 else f"line{n}": self._some(4) for n in kept}
        elif kind == "read":
            texts = {f"c{n}": self._some(1) for n in range(POOL)}
            file = self.settings.home.parent / "corpus.jsonl"
            rows = ({"id": name, "title": name, "text": text} for name, (text,) in texts.items())
            file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        elif kind == "delete":
            names = tuple(self.random.sample(sorted(self.documents), min(4, len(self.documents))))
        elif kind == "ask":
            names = tuple(f"run-{self.turn}-{n}" for n in range(RUNS))
        dies = kind in ("put", "rebuild") and self.random.random() < 0.3
        die_at = self.random.choice(ALL) if dies else None
        return Operation(
            kind=kind,
            settings=self.settings,
            texts=texts,
            names=names,
            file=file,
            die_at=die_at,
            release=self.release + (kind == "migrate"),
            older_than=self._age() if kind == "remove" else None,
        )

    def _age(self) -> float:
        """Return an age in seconds that some runs have, but not the latest."""
        times = sorted(self.runs.values())
        return (datetime.now(UTC) - self.random.choice(times[:-RUNS] or times[:1])).total_seconds()

    def _some(self, most: int) -> Texts:
        """Texts with a distinct name, and enough words that few pairs have equal distances.

        Where all are, HNSW's graph has vectors that no search comes to.
        """
        return tuple(
            f"Here stands Word{self._word()} in this text of Great Ullavar: "
            f"{' '.join(self._word() for _ in range(self.random.randint(3, 12)))}."
            for _ in range(self.random.randint(1, most))
        )

    def _word(self) -> str:
        return f"{self.random.getrandbits(40):x}"

    def _check_release(self, done: Done) -> None:
        """A catalogue killed during a migration has the old or the new version; the next start resumes."""
        found = release_of(catalogue_url(self.settings.home, self.settings.database_url))
        assert found in ([self.release] if done.whole else [self.release - 1, self.release])

    def _check_documents(self, operation: Operation, done: Done) -> None:
        """Check that each document is as it was reported, or whole in the old or the new version."""
        catalogue = Catalogue(
            open_engine(catalogue_url(self.settings.home, self.settings.database_url)),
            owner=self.settings.owner,
            collection=self.settings.collection,
        )
        found = {
            listed.id: tuple(passage.text for passage in catalogue.passages_of(listed.id))
            for listed in catalogue.list_documents(limit=10 * POOL)
        }
        new = {**operation.texts, **(dict.fromkeys(operation.names) if operation.kind == "delete" else {})}
        for name in self.documents.keys() | found.keys() | new.keys():
            old = self.documents.get(name)
            allowed = [new[name]] if name in done.names and name in new else [old, new.get(name, old)]
            assert found.get(name) in allowed, f"{operation.kind}: {name} is {found.get(name)}, not one of {allowed}"
        before = {text for texts in self.documents.values() for text in texts}
        self.documents = found
        self._check_indexes(catalogue, before - {text for texts in found.values() for text in texts})
        catalogue.close()

    def _check_indexes(self, catalogue: Catalogue, gone: set[str]) -> None:
        indexes = IndexSet(self.settings, catalogue, HashingEmbedder())
        passages = catalogue.passages(sorted(catalogue.passage_ids()))
        looked_for = self.random.sample(passages, min(LOOKED_FOR, len(passages)))
        index_contents.check(
            indexes, passages, looked_for, self.random.sample(sorted(gone), min(LOOKED_FOR, len(gone)))
        )
        indexes.close()

    async def _check_runs(self, operation: Operation, done: Done, began: datetime) -> None:
        """Check that all runs can be read with their texts, finished ones are unchanged, and others can be resumed."""
        async with open_store(self.settings) as store:
            runs = RunService(store, Services(model=InProcess(), retriever=Shelf()))
            found = await times(store)
            old = began - timedelta(seconds=operation.older_than or 0.0)
            gone = {self.runs[name] for name in self.runs.keys() - found.keys()}
            assert not gone or (operation.kind == "remove" and max(gone) <= old + (datetime.now(UTC) - began))
            assert not (operation.kind == "remove" and done.whole) or all(at >= old for at in found.values())
            assert operation.kind != "ask" or found.keys() >= set(done.names)
            for thread in await store.threads.list_newest():
                answer = kills.essence((await last_answer(runs.run(thread.id))).to_json())
                self.expected = self.expected or answer
                assert answer == self.expected
                assert await list_checkpoints(runs, thread.id)
                await export_run(runs, thread.id)
            self.runs = await times(store)
            assert await asyncio.to_thread(in_checkpoints, store) <= self.runs.keys()


async def times(store: Store) -> dict[str, datetime]:
    """Return the time of the last change of each run."""
    return {thread.id: datetime.fromisoformat(thread.updated_at) for thread in await store.threads.list_newest()}


def in_checkpoints(store: Store) -> set[str]:
    """Return the runs that have rows."""
    tables = CHECKPOINT_TABLES[store.engine.dialect.name]
    with store.engine.connect() as connection:
        return {id for table in tables for id in connection.scalars(sql(f"SELECT DISTINCT thread_id FROM {table}"))}


Engines = Callable[[str], str]
"""The URL of a server by the name of its fixture, which starts it."""


@pytest.fixture
def engines(request: pytest.FixtureRequest) -> Engines:
    return lambda name: str(request.getfixturevalue(name))


async def run_scenario(
    number: int, folder: Path, engines: Engines, times: dict[str, float], *, killed: int, first: Sequence[str] = ()
) -> Scenario:
    """Run a scenario with this number of kills."""
    in_postgres, on_server = PLACES[number % len(PLACES)]
    home = folder / f"scenario-{number}"
    home.mkdir()
    with database(engines("postgres_url")) if in_postgres else nullcontext(None) as url:
        settings = Settings(
            home=home / "home",
            embedder="hashing",
            collection=f"scenario-{number}-{uuid4().hex[:8]}",
            database_url=url,
            chroma_url=engines("chroma_url") if on_server else None,
        )
        scenario = Scenario(settings, Random(number), times, list(first))
        try:
            while scenario.kills.total() < killed:
                await scenario.step()
                assert scenario.late < 20 * killed, "most operations end before they are killed"
        except AssertionError as error:
            error.add_note(f"scenario {number}, turn {scenario.turn}, {scenario.kills}")
            raise
    shutil.rmtree(home)
    return scenario


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(len(PLACES)))
async def test_short_sequence_of_kills(number: int, tmp_path: Path, engines: Engines) -> None:
    """Data is stored, and then each write is killed."""
    first = ("put", "ask", "migrate", "remove")
    times = {kind: 0.5 for kind in KINDS if kind not in first[:2]}
    scenario = await run_scenario(number, tmp_path, engines, times, killed=4, first=first)
    assert scenario.documents
    assert scenario.release > 0


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(SCENARIOS))
async def test_thousand_kills_resume(number: int, tmp_path: Path, engines: Engines) -> None:
    await run_scenario(number, tmp_path, engines, {}, killed=KILLS)
