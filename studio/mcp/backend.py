"""What the tools work with: one owner's documents and runs."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sleuth.graphs.core import Budget, Event
from sleuth.studio.client import open_sleuth
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

Events = AsyncGenerator[Event]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, and how it is to be answered."""

    question: str
    method: str
    values: dict[str, Any]
    budget: Budget


class Backend(Protocol):
    """Answers, searches and shows, for one owner."""

    def library(self) -> AbstractAsyncContextManager[Collection]:
        """The owner's documents, as long as the block lasts."""
        ...

    def ask(self, asked: Asked) -> Events:
        """A run of the owner's: its steps, then its answer; raises SleuthError."""
        ...

    def resume(self, thread: str, budget: Budget | None) -> Events:
        """Goes on with a run of the owner's; raises SleuthError."""
        ...


@dataclass(frozen=True, kw_only=True)
class Local:
    """Opens what a call needs for that call alone: in between, documents can be read in from the command line."""

    settings: Settings

    @asynccontextmanager
    async def library(self) -> AsyncIterator[Collection]:
        """The documents of the settings' owner."""
        async with (
            hold(self.settings.home, "shared", command="sleuth mcp"),
            await Collection.open(self.settings) as found,
        ):
            yield found

    async def ask(self, asked: Asked) -> Events:
        """A run in the store of the settings."""
        async with (
            open_sleuth(self.settings, command="sleuth mcp") as sleuth,
            aclosing(
                sleuth.stream(asked.question, method=asked.method, values=asked.values, budget=asked.budget)
            ) as events,
        ):
            async for event in events:
                yield event

    async def resume(self, thread: str, budget: Budget | None) -> Events:
        """Goes on with a run in the store of the settings."""
        async with (
            open_sleuth(self.settings, command="sleuth mcp") as sleuth,
            aclosing(sleuth.runs.run(thread, budget=budget)) as events,
        ):
            async for event in events:
                yield event
