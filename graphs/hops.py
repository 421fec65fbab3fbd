"""Runs within runs: how `auto` has other methods answer its question, each in a thread of its own.

A hop's thread is named after the place in the outer run that it is started from. After a kill the same place goes on
with the same thread; a fork of the outer run is another place, and gets threads of its own.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from sleuth.graphs.answer import Answer
from sleuth.graphs.handed_in import beside_collection, load_pages
from sleuth.graphs.private import PrivateGraph
from sleuth.graphs.registry import configure, method, runnable
from sleuth.graphs.state import Context, HopEnd, HopInput, MethodSettings, Tell
from sleuth.graphs.threads import LONGEST_NAME, Origin, Thread
from sleuth.tools.settings import Profile

if TYPE_CHECKING:
    from sleuth.graphs.runs import Runs

NO_LIMIT = 100_000
"""LangGraph's own step limit, far beyond what the methods' bounds allow."""

Compiled = CompiledStateGraph[Any, Context, Any, Any]


@cache
def _without_checkpoints(name: str) -> Compiled:
    """A method, or the chat, compiled once: that takes longer than many a run of it."""
    return PrivateGraph(runnable(name).graph()).compile(name=name)


def compiled(name: str, saver: BaseCheckpointSaver[Any]) -> Compiled:
    """A method's graph over a checkpointer."""
    return _without_checkpoints(name).copy({"checkpointer": saver})


async def happenings(
    graph: Compiled, given: dict[str, Any] | Command[Any] | None, config: RunnableConfig, context: Context
) -> AsyncGenerator[dict[str, Any]]:
    """Runs a graph and tells its steps: `node`, `state`, `update` and `task`; those of hops say whose.

    Where the context has a hearing, what is said in model calls is told between them: see `sleuth.agents.words`.
    """
    run: Any = graph.astream(given, config, context=context, stream_mode=["tasks", "custom"], durability="sync")
    async with aclosing(run) as events:
        async for mode, event in events:
            if mode == "custom":
                yield event
            elif event["name"] in graph.nodes and not event.get("error"):  # else it is told again when it is resumed
                yield _step(event)


def _step(event: dict[str, Any]) -> dict[str, Any]:
    finished = "result" in event
    update = dict(event["result"] or {}) if finished else {}
    return {
        "node": event["name"],
        "state": "finished" if finished else "started",
        "update": update,
        "task": event["id"],
    }


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
        async with self.runs.store.leases.hold(id):
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
