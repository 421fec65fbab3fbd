"""Whatever the model server does, a run ends with an answer or with an error that says why, and then it goes on.

Each seed is one run of one method in weather of its own: up to three sessions while things go wrong, then one in calm.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import kills
import pytest
from fault_trials import EVERY, Instant
from faulty_server import CONTENT, Face, Weather, facing
from hashing_embedder import HashingEmbedder
from slices import Sweep, count
from trials import IRCOT, Trial

from sleuth.agents.gateway import RETRIES, Gateway
from sleuth.graphs.answer import Answer
from sleuth.graphs.ingest import ingest
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.store import Store, open_store
from sleuth.studio.client import last
from sleuth.tools.errors import ModelError
from sleuth.tools.library import Library
from sleuth.tools.settings import Settings
from sleuth.tools.triples import MemoryTriples

pytestmark = pytest.mark.integration

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
SEEDS = 1_000
SAMPLE = 26
AT_ONCE = 16
RATES = (0.02, 0.1, 0.25, 0.5)
BAD_SESSIONS = 3
TIMEOUT = 8.0
"""Of a call while things go wrong; longer than the pauses between its tries."""
HANGS = 300.0
"""Nothing takes so long that does not hang, on a slow machine either."""


@dataclass
class House:
    """Documents, a store of runs, and the faces of one scripted model for each trial."""

    settings: Settings
    library: Library
    store: Store
    faces: dict[str, Face]
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Session:
    """What one process would have seen of a run."""

    ended: str
    answer: Answer | None
    problem: str = ""


@dataclass
class Run:
    """One run of a trial over its sessions; `kept` counts the calls that a later session had from an earlier one.

    `reached`: whether the gateway opened in the latest session.
    """

    house: House
    trial: Trial
    weather: Weather
    thread: str
    kept: int = 0
    reached: bool = False
    triples: MemoryTriples = field(default_factory=MemoryTriples)

    async def session(self, within: float) -> Session:
        """From the opening of the gateway to an answer or an error, in time."""
        face = self.house.faces[self.trial.method]
        url = face.url(self.thread, self.weather)
        settings = self.house.settings.model_copy(update={"model_url": url, "timeout": within})
        try:
            async with asyncio.timeout(HANGS):
                answer = await self._asked(settings)
        except ModelError as error:
            assert url in str(error) or "SLEUTH_" in str(error), f"this names no cause: {error}"
            return Session(type(error).__name__, None, str(error))
        return Session(answer.status, answer)

    async def _asked(self, settings: Settings) -> Answer:
        self.reached = False
        async with Gateway.open(settings) as model:
            self.reached = True
            library = self.house.library
            services = Services(model=model, retriever=library, embedder=library.embedder, triples=self.triples)
            runs = Runs(self.house.store, services)
            if not await self.house.store.threads.exists(self.thread):
                await runs.start(self.trial.question, self.trial.method, values=self.trial.values, thread=self.thread)
            heard = self.weather.seed % 2 == 0
            return await last(runs.run(self.thread, listening=(lambda: True) if heard else None))

    async def checked(self, within: float) -> Session:
        """A session that sends nothing again that was committed before it, and no call too often."""
        before = len(self.weather.calls)
        done = kills.committed(self.house.settings, set(self.weather.calls))
        self.kept += len(done)
        session = await self.session(within)
        sent = Counter(self.weather.calls[before:])
        assert not done & sent.keys(), "a call that had completed was sent again"
        assert max(sent.values(), default=0) <= RETRIES + 1, f"a storm: {sent.most_common(3)}"
        if session.problem and self.reached:
            found = await self.house.store.threads.get(self.thread)
            assert (found.status, found.problem) == ("failed", session.problem)
        return session

    async def to_its_end(self) -> list[Session]:
        """Sessions while things go wrong, then one in calm, in which it is answered."""
        sessions = [await self.checked(TIMEOUT)]
        while sessions[-1].answer is None and len(sessions) < BAD_SESSIONS:
            sessions.append(await self.checked(TIMEOUT))
        if sessions[-1].answer is None:
            self.weather.calm = True
            sessions.append(await self.checked(HANGS))
        answer = sessions[-1].answer
        assert answer is not None, f"not answered in calm: {sessions[-1].problem}"
        if not CONTENT & self.weather.met.keys():
            assert kills.essence(answer.to_json()) == self.house.expected[self.trial.method]
        return sessions


@asynccontextmanager
async def housed(home: Path, trials: Sequence[Trial]) -> AsyncIterator[House]:
    """The example corpus, and what each trial says when nothing goes wrong."""
    settings = Settings(home=home, embedder="hashing")
    await ingest([CORPUS], settings=settings, embedder=HashingEmbedder())
    async with (
        await Library.open(settings, embedder=HashingEmbedder()) as library,
        open_store(settings) as store,
        faces(trials) as found,
    ):
        house = House(settings, library, store, found)
        for trial in trials:
            run = Run(house, trial, Weather(0, 0.0), f"calm-{trial.method}")
            answer = (await run.session(HANGS)).answer
            assert answer
            house.expected[trial.method] = kills.essence(answer.to_json())
        yield house


@asynccontextmanager
async def faces(trials: Sequence[Trial]) -> AsyncIterator[dict[str, Face]]:
    if not trials:
        yield {}
        return
    async with facing(Instant(trials[0].script)) as face, faces(trials[1:]) as others:
        yield {trials[0].method: face, **others}


async def try_seed(house: House, seed: int) -> dict[str, Any]:
    """One run in its weather, and what was seen."""
    trial = EVERY[seed % len(EVERY)]
    weather = Weather(seed, Random(seed).choice(RATES))
    run = Run(house, trial, weather, f"s{seed}-{trial.method}")
    try:
        sessions = await run.to_its_end()
    except AssertionError as error:
        error.add_note(f"seed {seed}, {trial.method}, met {weather.met}")
        raise
    return {
        "method": trial.method,
        "ended": sessions[-1].ended,
        "errors": Counter(session.ended for session in sessions if session.answer is None),
        "met": {str(fault): times for fault, times in weather.met.items()},
        "sent": len(weather.calls),
        "calls": len(set(weather.calls)),
        "kept": run.kept,
        "longest": round(max(weather.silences, default=0.0), 2),
    }


async def test_a_sample_of_faults(tmp_path: Path) -> None:
    async with housed(tmp_path, EVERY) as house, asyncio.TaskGroup() as group:
        tried = [group.create_task(try_seed(house, seed)) for seed in range(SAMPLE)]
    seen = [task.result() for task in tried]
    assert len({row["method"] for row in seen}) == len(EVERY)
    assert sum(bool(row["errors"]) for row in seen) >= SAMPLE // 4  # resumed, and not only got over
    assert sum(row["kept"] for row in seen) > SAMPLE


async def test_what_a_server_can_do_is_not_mistaken_in_bad_weather(tmp_path: Path) -> None:
    async def found(face: Face, weather: Weather) -> Any:
        home = tmp_path / f"home-{weather.seed}"
        settings = Settings(home=home, model_url=face.url(f"s{weather.seed}", weather), timeout=TIMEOUT)
        async with Gateway.open(settings):
            (capabilities,) = json.loads((home / "capabilities.json").read_text()).values()
            return capabilities

    async with facing(Instant(IRCOT.script)) as face:
        calm = await found(face, Weather(0, 0.0))
        weathers = [Weather(seed, 0.3) for seed in range(1, 21)]
        tried = await asyncio.gather(*(found(face, weather) for weather in weathers), return_exceptions=True)
    assert all(isinstance(each, ModelError) or each == calm for each in tried), tried
    assert sum(each == calm and bool(weather.met) for each, weather in zip(tried, weathers, strict=True)) > 3


async def test_the_server_is_started_again_in_the_middle_of_twenty_runs(tmp_path: Path) -> None:
    async with housed(tmp_path, [IRCOT]) as house:
        face, runs = house.faces[IRCOT.method], [Run(house, IRCOT, Weather(n, 0.0), f"r{n}") for n in range(20)]
        async with asyncio.TaskGroup() as group:
            first = [group.create_task(run.checked(HANGS)) for run in runs]
            while sum(len(run.weather.calls) for run in runs) < 60:  # noqa: ASYNC110 - some are anywhere by then
                await asyncio.sleep(0.001)
            await face.stop()
            while not any(task.done() for task in first):  # noqa: ASYNC110 - its tries were in vain
                await asyncio.sleep(0.01)
            await face.start()
        broken = [run for run, task in zip(runs, first, strict=True) if task.result().answer is None]
        assert broken
        assert {task.result().ended for task in first} <= {"ModelUnavailable", "answered"}
        async with asyncio.TaskGroup() as group:
            again = [group.create_task(run.checked(HANGS)) for run in runs]
    for task in again:
        answer = task.result().answer
        assert answer and kills.essence(answer.to_json()) == house.expected[IRCOT.method]
    assert sum(run.kept for run in broken) > 0


@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_a_thousand_runs_in_bad_weather(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = Sweep("model-server", SEEDS)
    left = sweep.left()

    async def work(house: House) -> None:
        for seed in left:
            sweep.passed(seed, **await try_seed(house, seed))

    if sweep.due():
        async with housed(tmp_path, EVERY) as house, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work(house))
    rows = sweep.end()
    told = {name: count(rows, name) for name in ("method", "ended", "errors", "met")}
    told |= {name: sum(row[name] for row in rows) for name in ("sent", "calls", "kept")}
    told["longest"] = max(row["longest"] for row in rows)
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(told, indent=1)}\n")
