"""Backends of the tools: access to one owner's documents and runs."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Event
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

Events = AsyncGenerator[Event]


class Backend(Protocol):
    """The operations of the tools, for one owner."""

    def collection(self) -> AbstractAsyncContextManager[Collection]:
        """Open the owner's documents."""
        ...

    def ask(self, question: str, method: str, *, values: dict[str, Any], budget: Budget, where: str) -> Events:
        """Run a method with its settings on the documents that match a filter; yield its steps, then its answer."""
        ...

    def resume(self, thread: str, budget: Budget | None) -> Events:
        """Resume a run of the owner; raise SleuthError."""
        ...


@dataclass(frozen=True, kw_only=True)
class LocalBackend:
    """Backend that opens the home for each call: between calls, the command line can ingest documents."""

    settings: Settings

    @asynccontextmanager
    async def collection(self) -> AsyncIterator[Collection]:
        """Open the documents of the settings' owner."""
        async with (
            hold(self.settings.home, "shared", command="sleuth mcp", wait=self.settings.wait),
            await Collection.open(self.settings) as found,
        ):
            yield found

    async def ask(self, question: str, method: str, *, values: dict[str, Any], budget: Budget, where: str) -> Events:
        """Run a method in the store of the settings."""
        async with (
            open_sleuth(self.settings, command="sleuth mcp") as sleuth,
            aclosing(sleuth.stream(question, method=method, values=values, budget=budget, where=where)) as events,
        ):
            async for event in events:
                yield event

    async def resume(self, thread: str, budget: Budget | None) -> Events:
        """Resume a run in the store of the settings."""
        async with (
            open_sleuth(self.settings, command="sleuth mcp") as sleuth,
            aclosing(sleuth.runs.run(thread, budget=budget)) as events,
        ):
            async for event in events:
                yield event
