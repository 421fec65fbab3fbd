"""`kill -9` at random moments of whatever writes: what was acknowledged is there at the next start, and all agrees.

A life is one store through many deeds, each killed on the way; after each the next start is looked at.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import deeds
import kills
import psycopg
import pytest
from four_hops import InProcess, Shelf
from hashing_embedder import HashingEmbedder
from slices import Sweep, count
from storage_child import Deed

from sleuth.graphs.history import export, history
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.store import open_store
from sleuth.studio.client import last
from sleuth.tools.catalogue import Catalogue
from sleuth.tools.database import catalogue_url
from sleuth.tools.indexes import ALL, Indexes
from sleuth.tools.keywords import KeywordIndex
from sleuth.tools.settings import Settings
from sleuth.tools.vectors import VectorIndex

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.db"
LIVES = 40
KILLS = 25
"""In a life."""
KINDS = ("put", "read", "delete", "rebuild", "ask", "thin_out")
POOL = 30
RUNS = 3
PLACES = [(False, False), (True, False), (False, True), (True, True)]
"""Whether the catalogue and the runs are in Postgres, and the vectors on Chroma's server."""

Texts = tuple[str, ...]


@dataclass
class Life:
    """A store, what has to be in it, and how long its deeds take in seconds."""

    settings: Settings
    dice: Random
    seconds: dict[str, float]
    documents: dict[str, Texts] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] | None = None
    kills: Counter[str] = field(default_factory=Counter)
    late: int = 0
    mended: int = 0
    turn: int = 0

    async def go_on(self) -> None:
        """One deed, killed on the way, and a look at what is there."""
        self.turn += 1
        kind = self.dice.choice(KINDS)
        deed = self._deed(kind)
        measured = self.seconds.get(kind)
        if measured is None or deed.die_at:
            done = await deeds.do(deed)
        else:
            done = await deeds.do(deed, kill_after=self.dice.uniform(0.0, measured * 1.1))
        if done.whole:
            self.seconds[kind] = done.seconds
            self.late += 1
        else:
            self.kills[kind] += 1
        self._check_documents(deed, done)
        if kind in ("ask", "thin_out"):
            await self._check_runs()

    def _deed(self, kind: str) -> Deed:
        texts: dict[str, Texts] = {}
        names: tuple[str, ...] = ()
        file = None
        if kind == "put":
            texts = {f"d{n}": self._some(4) for n in self.dice.sample(range(POOL), 6)}
        elif kind == "read":
            texts = {f"c{n}": self._some(1) for n in range(POOL)}
            file = self.settings.home.parent / "corpus.jsonl"
            rows = ({"id": name, "title": name, "text": text} for name, (text,) in texts.items())
            file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        elif kind == "delete":
            names = tuple(self.dice.sample(sorted(self.documents), min(4, len(self.documents))))
        elif kind == "ask":
            names = tuple(f"run-{self.turn}-{n}" for n in range(RUNS))
        dies = kind in ("put", "rebuild") and self.dice.random() < 0.3
        die_at = self.dice.choice(ALL) if dies else None
        return Deed(kind=kind, settings=self.settings, texts=texts, names=names, file=file, die_at=die_at)

    def _some(self, most: int) -> Texts:
        """Texts with a word of their own."""
        return tuple(
            f"Word{self.dice.getrandbits(40):x} stands in this text of Great Ullavar."
            for _ in range(self.dice.randint(1, most))
        )

    def _check_documents(self, deed: Deed, done: deeds.Done) -> None:
        """Each document is as it was acknowledged, or, where the kill came before that, whole in one of two states."""
        catalogue = Catalogue(
            catalogue_url(self.settings.home, self.settings.database_url),
            owner=self.settings.owner,
            collection=self.settings.collection,
        )
        found = {
            listed.id: tuple(passage.text for passage in catalogue.passages_of(listed.id))
            for listed in catalogue.list_documents(limit=10 * POOL)
        }
        new = {**deed.texts, **(dict.fromkeys(deed.names) if deed.kind == "delete" else {})}
        for name in self.documents.keys() | found.keys() | new.keys():
            old = self.documents.get(name)
            allowed = [new[name]] if name in done.names and name in new else [old, new.get(name, old)]
            assert found.get(name) in allowed, f"{deed.kind}: {name} is {found.get(name)}, not one of {allowed}"
        self.documents = found
        self._check_indexes(catalogue)
        catalogue.close()

    def _check_indexes(self, catalogue: Catalogue) -> None:
        indexes = Indexes(self.settings, catalogue, HashingEmbedder())
        for name in ALL:
            index = indexes.ready(name, lambda _name, _passages: None)
            assert (index.count(), index.ids()) == (catalogue.count_passages(), catalogue.passage_ids())
            if self.documents and isinstance(index, KeywordIndex | VectorIndex):
                document = self.dice.choice(sorted(self.documents))
                wanted = catalogue.passages_of(document)[-1]
                text = f"{wanted.title}. {wanted.text}"
                assert index.search(text, 1)[0][0] == wanted.id
        self.mended += len(indexes.notes)
        indexes.close()

    async def _check_runs(self) -> None:
        """Every run can be read with all its texts; what had ended says the same, what had not goes on to its end."""
        async with open_store(self.settings) as store:
            runs = Runs(store, Services(model=InProcess(), retriever=Shelf()))
            for thread in await store.threads.newest():
                if thread.id != "golden":
                    said = kills.essence((await last(runs.run(thread.id))).to_json())
                    self.expected = self.expected or said
                    assert said == self.expected
                assert await history(runs, thread.id)
                await export(runs, thread.id)


Engines = Callable[[str], str]
"""The URL of a server by the name of its fixture, which starts it."""


@pytest.fixture
def engines(request: pytest.FixtureRequest) -> Engines:
    return lambda name: str(request.getfixturevalue(name))


@contextmanager
def database(url: str) -> Iterator[str]:
    """A Postgres database of one's own."""
    name = f"life_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


async def live(life: int, folder: Path, engines: Engines, times: dict[str, float], killed: int) -> Life:
    """A life with so many kills."""
    in_postgres, on_server = PLACES[life % len(PLACES)]
    home = folder / f"life-{life}"
    home.mkdir()
    with database(engines("postgres_url")) if in_postgres else nullcontext(None) as url:
        settings = Settings(
            home=home / "home",
            embedder="hashing",
            collection=f"life-{life}-{uuid4().hex[:8]}",
            database_url=url,
            chroma_url=engines("chroma_url") if on_server else None,
        )
        lived = Life(settings, Random(life), times)
        if not in_postgres:
            settings.home.mkdir()
            shutil.copyfile(GOLDEN, settings.home / "runs.sqlite")
        try:
            while lived.kills.total() < killed:
                await lived.go_on()
                assert lived.late < 20 * killed, "most deeds end before they are killed"
        except AssertionError as error:
            error.add_note(f"life {life}, turn {lived.turn}, {lived.kills}")
            raise
    shutil.rmtree(home)
    return lived


@pytest.mark.parametrize("life", range(len(PLACES)))
async def test_a_short_life(life: int, tmp_path: Path, engines: Engines) -> None:
    times = dict.fromkeys(KINDS, 0.5)
    lived = await live(life, tmp_path, engines, times, killed=4)
    assert lived.documents


def _where(settings: Settings) -> str:
    database = "Postgres" if settings.database_url else "SQLite"
    return f"{database}, {'a Chroma server' if settings.chroma_url else 'embedded Chroma'}"


@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_a_thousand_kills(tmp_path: Path, engines: Engines, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = Sweep("storage-kills", LIVES)
    times: dict[tuple[bool, bool], dict[str, float]] = {place: {} for place in PLACES}
    for life in sweep.left():
        lived = await live(life, tmp_path, engines, times[PLACES[life % len(PLACES)]], KILLS)
        sweep.passed(
            life,
            place={_where(lived.settings): lived.kills.total()},
            kills=lived.kills,
            late=lived.late,
            mended=lived.mended,
        )
    rows = sweep.end()
    told = {name: count(rows, name) for name in ("place", "kills")}
    told["mended"] = {"lines": sum(row["mended"] for row in rows)}
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(told, indent=1)}\n")
