"""Everything that one server has open, from its start to its end."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from sleuth.agents.formatting import Turn
from sleuth.graphs.chat import RewrittenQuestion, rewrite_question
from sleuth.graphs.persistence import open_store
from sleuth.studio.server.home_lock import Door
from sleuth.studio.server.ingestion import Ingests, Uploads
from sleuth.studio.server.middleware.rate_limit import Quota
from sleuth.studio.server.runs import Conversations, EventLog, Jobs
from sleuth.studio.server.telemetry import Telemetry
from sleuth.studio.server.tenants import OpenModel, Tenants
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings


@dataclass(frozen=True, kw_only=True)
class House:
    """What the routes work with."""

    settings: Settings
    tenants: Tenants
    telemetry: Telemetry
    log: EventLog
    jobs: Jobs
    quota: Quota
    ingests: Ingests
    door: Door
    conversations: Conversations

    async def understood(self, owner: str, message: str, turns: Sequence[Turn]) -> RewrittenQuestion:
        """A message of a conversation as a question that stands alone; what that takes counts for its owner.

        Raises:
            QuotaUsedUp: there is nothing left to pay it from.
            ModelError: the model server cannot be used.
        """
        await self.quota.require(owner)
        runs = await self.tenants.runs(owner)
        assert runs.services
        services = runs.services
        made = await rewrite_question(
            message, turns, model=services.model, archive=runs.store.archive, tracing=services.tracing
        )
        await self.quota.add(owner, sum(c["prompt_tokens"] + c["completion_tokens"] for c in made.calls.values()))
        return made

    async def close(self) -> None:
        """Ends what goes on, to be picked up by the next start, and the streams of those who follow it."""
        self.ingests.close()
        await self.jobs.close()


@asynccontextmanager
async def open_house(
    settings: Settings, *, open_model: OpenModel, telemetry: Telemetry, embedder: Embedder | None = None
) -> AsyncIterator[House]:
    """Opens the store and goes on with what the last server left."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings))
        tenants = await stack.enter_async_context(Tenants(settings, store, open_model, embedder))
        log, door = await asyncio.to_thread(EventLog, store.engine), Door(settings.home)
        quota = await asyncio.to_thread(Quota, store.engine, settings.tokens_a_day)
        jobs = Jobs(tenants=tenants, log=log, door=door, quota=quota, telemetry=telemetry)
        await jobs.prepare()
        uploads = await asyncio.to_thread(Uploads, store.engine, settings.home / "uploads")
        ingests = Ingests(tenants, door, uploads)
        await ingests.pick_up()
        house = House(
            settings=settings,
            tenants=tenants,
            telemetry=telemetry,
            log=log,
            jobs=jobs,
            quota=quota,
            ingests=ingests,
            door=door,
            conversations=await asyncio.to_thread(Conversations, store.engine),
        )
        await log.tidy()
        await house.conversations.tidy()
        await stack.enter_async_context(_beside(log.run()))
        await stack.enter_async_context(_beside(ingests.run()))
        stack.push_async_callback(house.close)
        await jobs.pick_up()
        yield house


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Has something done as long as the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _house(request: Request) -> House:
    house = request.app.state.house
    assert isinstance(house, House)
    return house


TheHouse = Annotated[House, Depends(_house)]
