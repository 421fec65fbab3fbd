"""A store of runs in a file, and runs in it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes import Chain, Replying, RunsFor, Shelf, ask, example

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.service import RunService
from sleuth.tools.settings import Settings


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with open_store(settings) as opened:
        yield opened


@pytest.fixture
def chain() -> Chain:
    """Two hops, the second of which builds on the first."""
    return example("q08")


@pytest.fixture
def runs_with(store: Store, chain: Chain) -> RunsFor:
    """Runs with a model, over the passages of the chain or of another one."""

    def made(model: Replying, over: Chain = chain) -> RunService:
        return RunService(store, Services(model=model, retriever=Shelf(over.passages)))

    return made


@pytest.fixture
def model(chain: Chain) -> Replying:
    """A model that knows the chain."""
    return Replying(chain.reply_to)


@pytest.fixture
def runs(runs_with: RunsFor, model: Replying) -> RunService:
    return runs_with(model)


@pytest.fixture(scope="session")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with two finished PAR-RAG runs of the chain, `good` and `bad`, to copy."""
    home, chain = tmp_path_factory.mktemp("finished"), example("q08")

    async def fill() -> None:
        async with open_store(Settings(home=home, embedder="hashing")) as store:
            services = Services(model=Replying(chain.reply_to), retriever=Shelf(chain.passages))
            runs = RunService(store, services)
            for id in ("good", "bad"):
                await ask(runs, chain.question, thread=id)

    asyncio.run(fill())
    return home
