"""A store of runs in a file, and runs in it."""

from collections.abc import AsyncIterator

import pytest
from scenes import AnyModel, Chain, Replying, RunsFor, Shelf, example

from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.service import RunService, Services
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

    def made(model: AnyModel, over: Chain = chain) -> RunService:
        return RunService(store, Services(model=model, retriever=Shelf(over.passages)))

    return made


@pytest.fixture
def model(chain: Chain) -> Replying:
    """A model that knows the chain."""
    return Replying(chain.reply_to)


@pytest.fixture
def runs(runs_with: RunsFor, model: Replying) -> RunService:
    return runs_with(model)
