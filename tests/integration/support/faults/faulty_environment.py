"""Runs of every method over the example corpus, each against a scripted model server with faults of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kill as kills
from fault_scenarios import Instant, Trial
from faulty_server import CONTENT, FaultPlan, FaultyServer, faulty_server
from hashing_embedder import HashingEmbedder

from sleuth.agents.llm.client import RETRIES, LLMClient
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.triples import MemoryTriples

CORPUS = Path(__file__).parents[4] / "examples" / "corpus"
BAD_SESSIONS = 3
TIMEOUT = 8.0
"""Of a call while there are faults, in seconds; longer than the pauses between its retries."""
HANGS = 900.0
"""A session that takes longer, in seconds, hangs; a busy machine needs less. Most hangs show as a silence."""
LATE = 60.0
"""Seconds after its timeout in which a slow machine gives up a request."""


@dataclass
class Environment:
    """Documents, a store of runs, and a model server for each trial.

    `expected`: the result of each trial without faults. `took`: its seconds.
    """

    settings: Settings
    library: Collection
    store: Store
    servers: dict[str, FaultyServer]
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
    """One run of a trial over its sessions; `kept` counts the calls of earlier sessions that later ones did not repeat.

    `reached`: whether the model client opened in the latest session. `compared`: whether its answer was compared with
    the answer without faults.
    """

    environment: Environment
    trial: Trial
    plan: FaultPlan
    thread: str
    kept: int = 0
    reached: bool = False
    compared: bool = False
    triples: MemoryTriples = field(default_factory=MemoryTriples)

    async def session(self, within: float) -> Session:
        """Open the model client and run to an answer or an error."""
        url = self.environment.servers[self.trial.method].url(self.thread, self.plan)
        settings = self.environment.settings.model_copy(update={"model_url": url, "timeout": within})
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
            library = self.environment.library
            services = Services(model=model, retriever=library, embedder=library.embedder, triples=self.triples)
            runs = RunService(self.environment.store, services)
            if not await self.environment.store.threads.exists(self.thread):
                await runs.start(self.trial.question, self.trial.method, values=self.trial.values, thread=self.thread)
            streamed = self.plan.seed % 2 == 0
            return await last_answer(runs.run(self.thread, listening=(lambda: True) if streamed else None))

    async def checked(self, within: float) -> Session:
        """Run a session: it repeats no completed call, retries none too often, and waits for one timeout at most."""
        before, silent = len(self.plan.calls), len(self.plan.silent)
        done = kills.committed(self.environment.settings, set(self.plan.calls))
        self.kept += len(done)
        session = await self.session(within)
        waited = Counter(self.plan.silent[silent:])
        # A call that times out is repeated with half as many in flight: 8, 4, 2, 1.
        assert max(waited.values(), default=0) <= 4, f"too many timeouts for a call: {waited.most_common(3)}"
        sent = Counter(self.plan.calls[before:])
        assert not done & sent.keys(), "a call that had completed was sent again"
        excess = {call: times for call, times in sent.items() if times > (RETRIES + 1) * (1 + waited[call])}
        assert not excess, f"too many retries: {excess}"
        if session.problem and self.reached:
            found = await self.environment.store.threads.get(self.thread)
            assert (found.status, found.problem) == ("failed", session.problem)
        return session

    async def to_its_end(self) -> list[Session]:
        """Run sessions with faults, then one without, in which the question is answered."""
        sessions = [await self.checked(TIMEOUT)]
        while sessions[-1].answer is None and len(sessions) < BAD_SESSIONS:
            sessions.append(await self.checked(TIMEOUT))
        if sessions[-1].answer is None:
            self.plan.enabled = False
            sessions.append(await self.checked(HANGS))
        answer = sessions[-1].answer
        assert answer is not None, f"not answered without faults: {sessions[-1].problem}"
        longest = max(self.plan.silences, default=0.0)
        assert longest <= TIMEOUT + LATE, f"waited {longest:.0f} s in vain, with a timeout of {TIMEOUT} s"
        self.compared = not CONTENT & self.plan.injected.keys()
        if self.compared:
            assert kills.essence(answer.to_json()) == self.environment.expected[self.trial.method]
        return sessions


@asynccontextmanager
async def open_environment(home: Path, trials: Sequence[Trial]) -> AsyncIterator[Environment]:
    """Ingest the example corpus, and run each trial without faults."""
    settings = Settings(home=home, embedder="hashing")
    await ingest([CORPUS], settings=settings, embedder=HashingEmbedder())
    async with AsyncExitStack() as stack:
        library = await stack.enter_async_context(await Collection.open(settings, embedder=HashingEmbedder()))
        store = await stack.enter_async_context(open_store(settings))
        servers = {
            trial.method: await stack.enter_async_context(faulty_server(Instant(trial.script))) for trial in trials
        }
        environment = Environment(settings, library, store, servers)
        for trial in trials:
            began = time.monotonic()
            answer = (await Run(environment, trial, FaultPlan(0), f"calm-{trial.method}").session(HANGS)).answer
            assert answer
            environment.took[trial.method] = time.monotonic() - began
            environment.expected[trial.method] = kills.essence(answer.to_json())
        yield environment
