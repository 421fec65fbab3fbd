"""Runs of every method over the example corpus, each against a scripted model server in weather of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kill as kills
from fault_injection import CONTENT, Weather
from fault_scenario_runs import Instant
from fault_scenarios import Trial
from faulty_server import Face, facing
from hashing_embedder import HashingEmbedder

from sleuth.agents.llm.client import RETRIES, LLMClient
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.ingestion.graph import ingest
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.triples import MemoryTriples

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
BAD_SESSIONS = 3
TIMEOUT = 8.0
"""Of a call while things go wrong; longer than the pauses between its tries."""
HANGS = 900.0
"""Nothing takes so long that does not hang, on a machine with much else to do either; most hangs show as a silence."""
LATE = 60.0
"""How long after its time-out a request may be given up by a slow machine."""


@dataclass
class House:
    """Documents, a store of runs, and the faces of one scripted model for each trial.

    What each trial comes to when nothing goes wrong is in `expected`, and how many seconds that took in `took`.
    """

    settings: Settings
    library: Collection
    store: Store
    faces: dict[str, Face]
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)


@dataclass
class Session:
    """Events of a run as one process would see them."""

    ended: str
    answer: Answer | None
    problem: str = ""


@dataclass
class Run:
    """One run of a trial over its sessions; `kept` counts the calls that a later session had from an earlier one.

    `reached`: whether the gateway opened in the latest session. `compared`: whether its answer had to be, and is, the
    same word for word as one without faults.
    """

    house: House
    trial: Trial
    weather: Weather
    thread: str
    kept: int = 0
    reached: bool = False
    compared: bool = False
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
        async with LLMClient.open(settings) as model:
            self.reached = True
            library = self.house.library
            services = Services(model=model, retriever=library, embedder=library.embedder, triples=self.triples)
            runs = RunService(self.house.store, services)
            if not await self.house.store.threads.exists(self.thread):
                await runs.start(self.trial.question, self.trial.method, values=self.trial.values, thread=self.thread)
            heard = self.weather.seed % 2 == 0
            return await last_answer(runs.run(self.thread, listening=(lambda: True) if heard else None))

    async def checked(self, within: float) -> Session:
        """A session that sends nothing again that was committed before it, no call too often, none after silence."""
        before, silent = len(self.weather.calls), len(self.weather.silent)
        done = kills.committed(self.house.settings, set(self.weather.calls))
        self.kept += len(done)
        session = await self.session(within)
        waited = Counter(self.weather.silent[silent:])
        assert max(waited.values(), default=0) <= 1, f"more than one time-out for a call: {waited.most_common(3)}"
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
        longest = max(self.weather.silences, default=0.0)
        assert longest <= TIMEOUT + LATE, f"waited {longest:.0f} s in vain, with a time-out of {TIMEOUT} s"
        self.compared = not CONTENT & self.weather.met.keys()
        if self.compared:
            assert kills.essence(answer.to_json()) == self.house.expected[self.trial.method]
        return sessions


@asynccontextmanager
async def housed(home: Path, trials: Sequence[Trial]) -> AsyncIterator[House]:
    """The example corpus, and the result of each trial without faults."""
    settings = Settings(home=home, embedder="hashing")
    await ingest([CORPUS], settings=settings, embedder=HashingEmbedder())
    async with (
        await Collection.open(settings, embedder=HashingEmbedder()) as library,
        open_store(settings) as store,
        faces(trials) as found,
    ):
        house = House(settings, library, store, found)
        for trial in trials:
            run = Run(house, trial, Weather(0, 0.0), f"calm-{trial.method}")
            began = time.monotonic()
            answer = (await run.session(HANGS)).answer
            assert answer
            house.took[trial.method] = time.monotonic() - began
            house.expected[trial.method] = kills.essence(answer.to_json())
        yield house


@asynccontextmanager
async def faces(trials: Sequence[Trial]) -> AsyncIterator[dict[str, Face]]:
    if not trials:
        yield {}
        return
    async with facing(Instant(trials[0].script)) as face, faces(trials[1:]) as others:
        yield {trials[0].method: face, **others}
