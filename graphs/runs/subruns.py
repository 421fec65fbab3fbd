"""Runs within runs: how `auto` has other methods answer its question, each in a thread of its own.

A hop's thread is named after the place in the outer run that it is started from. After a kill the same place goes on
with the same thread; a fork of the outer run is another place, and gets threads of its own.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START

from sleuth.graphs.core import Answer, Context, HopEnd, HopInput, MethodSettings, Tell
from sleuth.graphs.persistence import LONGEST_NAME, Origin, Thread
from sleuth.graphs.registry import configure, method
from sleuth.graphs.runs.execution import NO_LIMIT, Compiled, compiled, happenings
from sleuth.graphs.runs.pages import beside_collection, load_pages
from sleuth.tools.settings import Profile

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import Runs


def _thread_of(hop: HopInput) -> str:
    """Named after the outer run; where that name leaves no room, after its beginning and what tells it from others."""
    outer, place = hop.parent, f".{hop.number}.{hop.place[:6]}"
    if len(outer) + len(place) > LONGEST_NAME:
        own = f"-{sha256(outer.encode()).hexdigest()[:12]}"
        outer = outer[: LONGEST_NAME - len(own) - len(place)] + own
    return outer + place


@dataclass(frozen=True, kw_only=True)
class ThreadHops:
    """Hops as runs of the same store: listed, leased, resumed and shown like any other."""

    runs: "Runs"
    outer: Thread
    listening: Callable[[], bool] | None = None

    async def run(self, hop: HopInput, tell: Tell) -> HopEnd:
        """The hop's run from wherever it stands, with the budget that it has now."""
        id = _thread_of(hop)
        if not await self.runs.store.threads.exists(id):
            origin = Origin(parent=hop.parent, checkpoint=hop.checkpoint, hop=hop.number)
            profile, pages = self.outer.options["profile"], await load_pages(self.runs.store.archive, self.outer)
            await self.runs.start(
                hop.question,
                hop.method,
                values=hop.values,
                profile=profile,
                thread=id,
                pages=pages,
                beside=beside_collection(self.outer),
                origin=origin,
            )
        thread = await self.runs.store.threads.get(id)
        graph, config = self.runs.graph(thread), self.runs.config(thread)
        settings = configure(method(hop.method), hop.values, self.outer.options["profile"])
        async with self.runs.store.locks.hold(id):
            await self.runs.store.threads.get(id)  # raises if it was removed meanwhile: removing takes the lock, too
            await _begin(graph, config, hop, settings)
        async with aclosing(self.runs.run(id, budget=hop.budget, listening=self.listening)) as events:
            async for event in events:
                if not isinstance(event, Answer):
                    tell(asdict(event))
        return _end(id, (await graph.aget_state(config)).values)


@dataclass(frozen=True, kw_only=True)
class SaverHops:
    """Hops in threads of a checkpointer that somebody else keeps, such as a LangGraph server.

    `context` is the outer run's. Before a hop begins, `announce` is told its thread.
    """

    saver: BaseCheckpointSaver[Any]
    context: Context
    profile: Profile = "default"
    announce: Callable[[str, HopInput], Awaitable[None]] | None = None

    async def run(self, hop: HopInput, tell: Tell) -> HopEnd:
        """The hop from the thread's latest checkpoint on; thread ids are UUIDs, which LangGraph's servers demand."""
        id, kind = str(uuid5(NAMESPACE_OID, f"{hop.parent}/{hop.number}/{hop.place}")), method(hop.method)
        settings = configure(kind, hop.values, self.profile)
        context = replace(self.context, settings=settings, budget=hop.budget, hops=self, started=monotonic())
        graph = compiled(hop.method, self.saver)
        place, about = {"thread_id": id, "checkpoint_ns": ""}, {"graph_id": hop.method}
        config = RunnableConfig(configurable=place, metadata=about, recursion_limit=NO_LIMIT)
        if self.announce:
            await self.announce(id, hop)
        await _begin(graph, config, hop, settings)
        before = await graph.aget_state(config)
        if before.tasks:
            async with aclosing(happenings(graph, None, config, context)) as steps:
                async for step in steps:
                    tell({"thread": id, "method": hop.method, "part_of": hop.parent, **step})
        return _end(id, (await graph.aget_state(config)).values)


async def _begin(graph: Compiled, config: RunnableConfig, hop: HopInput, settings: MethodSettings) -> None:
    """Writes down what a hop starts from, unless it has begun; in one go, or a kill could leave a half of it."""
    before = await graph.aget_state(config)
    if before.values or before.tasks:
        return
    given = {"question": hop.question, "notes": hop.notes}
    if not hop.plan:
        await graph.aupdate_state(config, given, as_node=START)
        return
    start = method(hop.method).start_from_plan
    assert start, f"{hop.method} takes no plan"
    await graph.aupdate_state(config, {**given, **start(hop.plan, settings)}, as_node="plan")


def _end(thread: str, values: Mapping[str, Any]) -> HopEnd:
    kept = ("verdict", "notes", "calls", "warnings")
    return HopEnd(thread=thread, **{name: values[name] for name in kept})
