"""Sub-runs: another method answers a question of a run, in a thread of its own.

The thread is named after the place in the outer run from which it is started. After a kill the same place resumes the
same thread; a fork of the outer run is another place and gets its own threads.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Context, MethodSettings, SubrunRequest, SubrunResult
from sleuth.graphs.core.tokens import TokenStream
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.thread import Origin, Thread
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs.execution import RECURSION_LIMIT, Compiled, compile_method, stream_steps
from sleuth.tools.settings import Profile

if TYPE_CHECKING:
    from sleuth.graphs.runs.service import RunService


def subrun_thread(request: SubrunRequest) -> str:
    """Return the name of a sub-run's thread: the outer run's name, abbreviated with a hash if it is too long."""
    outer, place = request.parent, f".{request.number}.{request.place[:6]}"
    if len(outer) + len(place) > LONGEST_NAME:
        suffix = f"-{sha256(outer.encode()).hexdigest()[:12]}"
        outer = outer[: LONGEST_NAME - len(suffix) - len(place)] + suffix
    return outer + place


@dataclass(frozen=True, kw_only=True)
class StoreSubruns:
    """Sub-runs as runs of the same store: listed, locked, resumed and shown like any other."""

    runs: "RunService"
    outer: Thread

    async def __call__(self, request: SubrunRequest) -> SubrunResult:
        """Start or resume a sub-run with the budget of the request."""
        runs, id = self.runs, subrun_thread(request)
        if not await runs.store.threads.exists(id):
            origin = Origin(parent=request.parent, parent_checkpoint=request.checkpoint, subrun=request.number)
            await runs.start_like(
                self.outer, request.question, request.method, values=request.values, thread=id, origin=origin
            )
        settings = configure(runnable(request.method), request.values, self.outer.options.profile)
        async with runs.hold(id) as held:  # raises if it was removed meanwhile
            graph, config = runs.graph(held.thread), runs.config(held.thread)
            await begin_subrun(graph, config, request, settings)
            async with aclosing(
                runs.run_held(id, budget=request.budget, wants_tokens=request.wants_tokens, control=request.control)
            ) as events:
                async for event in events:
                    if not isinstance(event, Answer):
                        request.on_step(asdict(event))
        return end_subrun(id, (await graph.aget_state(config)).values)


@dataclass(frozen=True, kw_only=True)
class CheckpointerSubruns:
    """Sub-runs in threads of any checkpointer, such as that of a LangGraph server.

    `context` is that of the outer run. `announce` is called with the thread before a sub-run begins.
    """

    saver: BaseCheckpointSaver[Any]
    context: Context
    profile: Profile = "default"
    announce: Callable[[str, SubrunRequest], Awaitable[None]] | None = None

    async def __call__(self, request: SubrunRequest) -> SubrunResult:
        """Start or resume a sub-run. Thread ids are UUIDs, which LangGraph's servers require."""
        id = str(uuid5(NAMESPACE_OID, f"{request.parent}/{request.number}/{request.place}"))
        kind, wants_tokens = runnable(request.method), request.wants_tokens
        settings = configure(kind, request.values, self.profile)
        streams = TokenStream(answers=kind.answers, wants_tokens=wants_tokens) if wants_tokens else None
        context = replace(
            self.context,
            settings=settings,
            budget=request.budget,
            token_stream=streams,
            subruns=self,
            started=time.monotonic(),
        )
        graph = compile_method(request.method, self.saver)
        place, about = {"thread_id": id, "checkpoint_ns": ""}, {"graph_id": request.method}
        config = RunnableConfig(configurable=place, metadata=about, recursion_limit=RECURSION_LIMIT)
        if self.announce:
            await self.announce(id, request)
        await begin_subrun(graph, config, request, settings)
        if (await graph.aget_state(config)).tasks:
            async with aclosing(stream_steps(graph, None, config, context, control=request.control)) as steps:
                async for step in steps:
                    request.on_step({"thread": id, "method": request.method, "part_of": request.parent, **step})
        return end_subrun(id, (await graph.aget_state(config)).values)


async def begin_subrun(
    graph: Compiled, config: RunnableConfig, request: SubrunRequest, settings: MethodSettings
) -> None:
    """Store the initial state of a sub-run in one write, unless it has begun."""
    before = await graph.aget_state(config)
    if before.values or before.tasks:
        return
    inputs = {"question": request.question, "notes": request.notes}
    if not request.plan:
        await graph.aupdate_state(config, inputs, as_node=START)
        return
    start = runnable(request.method).start_from_plan
    assert start, f"{request.method} takes no plan"
    await graph.aupdate_state(config, {**inputs, **start(request.plan, settings)}, as_node="plan")


def end_subrun(thread: str, values: Mapping[str, Any]) -> SubrunResult:
    """Return what the outer run keeps of a sub-run, from the values of its last state."""
    fields = ("verdict", "notes", "calls", "warnings")
    return SubrunResult(thread=thread, **{name: values[name] for name in fields})
