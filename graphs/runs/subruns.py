"""Sub-runs: `auto` has other methods answer its question, each in its own thread.

The thread of a sub-run is named after the place in the outer run from which it is started. After a kill the same place
resumes the same thread. A fork of the outer run is another place and gets its own threads.
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

from sleuth.agents.llm.token_stream import TokenStream
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Context, MethodSettings, OnStep, SubrunRequest, SubrunResult
from sleuth.graphs.core.state import find_hashes
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.threads import Origin, Thread
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.execution import RECURSION_LIMIT, Compiled, compile_method, stream_steps
from sleuth.tools.settings import Profile

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import RunService


def _thread_of(request: SubrunRequest) -> str:
    """Return the name of a sub-run's thread: the outer run's name, abbreviated with a hash if it is too long."""
    outer, place = request.parent, f".{request.number}.{request.place[:6]}"
    if len(outer) + len(place) > LONGEST_NAME:
        own = f"-{sha256(outer.encode()).hexdigest()[:12]}"
        outer = outer[: LONGEST_NAME - len(own) - len(place)] + own
    return outer + place


@dataclass(frozen=True, kw_only=True)
class StoreSubruns:
    """Sub-runs as runs of the same store: listed, locked, resumed and shown like any other."""

    runs: "RunService"
    outer: Thread
    listening: Callable[[], bool] | None = None

    async def run(self, request: SubrunRequest, tell: OnStep) -> SubrunResult:
        """Start or resume a sub-run with its present budget."""
        id = _thread_of(request)
        if not await self.runs.store.threads.exists(id):
            origin = Origin(parent=request.parent, checkpoint=request.checkpoint, hop=request.number)
            await self.runs.start_like(
                self.outer, request.question, request.method, values=request.values, thread=id, origin=origin
            )
        settings = configure(runnable(request.method), request.values, self.outer.options.profile)
        async with self.runs.store.locks.hold(id):
            thread = await self.runs.store.threads.get(id)  # raises if it was removed meanwhile
            graph, config = self.runs.graph(thread), self.runs.config(thread)
            await _begin(graph, config, request, settings)
        async with aclosing(
            self.runs.run(id, budget=request.budget, listening=self.listening, control=request.control)
        ) as events:
            async for event in events:
                if not isinstance(event, Answer):
                    tell(asdict(event))
        return _end(id, (await graph.aget_state(config)).values)


@dataclass(frozen=True, kw_only=True)
class CheckpointerSubruns:
    """Sub-runs in threads of any checkpointer, such as that of a LangGraph server.

    `context` is that of the outer run. `announce` is called with the thread before a sub-run begins.
    """

    saver: BaseCheckpointSaver[Any]
    context: Context
    profile: Profile = "default"
    announce: Callable[[str, SubrunRequest], Awaitable[None]] | None = None

    async def run(self, request: SubrunRequest, tell: OnStep) -> SubrunResult:
        """Start or resume a sub-run. Thread ids are UUIDs, which LangGraph's servers require."""
        id, kind = (
            str(uuid5(NAMESPACE_OID, f"{request.parent}/{request.number}/{request.place}")),
            runnable(request.method),
        )
        settings = configure(kind, request.values, self.profile)
        token_stream = TokenStream(listening=lambda: request.has_listeners)
        context = replace(
            self.context,
            settings=settings,
            budget=request.budget,
            hops=self,
            token_stream=token_stream,
            started=monotonic(),
        )
        graph = compile_method(request.method, self.saver)
        place, about = {"thread_id": id, "checkpoint_ns": ""}, {"graph_id": request.method}
        config = RunnableConfig(configurable=place, metadata=about, recursion_limit=RECURSION_LIMIT)
        if self.announce:
            await self.announce(id, request)
        await _begin(graph, config, request, settings)
        before = await graph.aget_state(config)
        if before.tasks:
            async with aclosing(stream_steps(graph, None, config, context, control=request.control)) as steps:
                async for step in steps:
                    tell({"thread": id, "method": request.method, "part_of": request.parent, **step})
        return _end(id, (await graph.aget_state(config)).values)


async def _begin(graph: Compiled, config: RunnableConfig, request: SubrunRequest, settings: MethodSettings) -> None:
    """Store the initial state of a sub-run in one write, unless it has begun."""
    before = await graph.aget_state(config)
    if before.values or before.tasks:
        return
    given = {"question": request.question, "notes": request.notes}
    if not request.plan:
        await graph.aupdate_state(config, given, as_node=START)
        return
    start = runnable(request.method).start_from_plan
    assert start, f"{request.method} takes no plan"
    await graph.aupdate_state(config, {**given, **start(request.plan, settings)}, as_node="plan")


def _end(thread: str, values: Mapping[str, Any]) -> SubrunResult:
    kept = ("verdict", "notes", "calls", "warnings")
    found = sorted(find_hashes({name: value for name, value in values.items() if name != "calls"}))
    return SubrunResult(thread=thread, found=found, **{name: values[name] for name in kept})
