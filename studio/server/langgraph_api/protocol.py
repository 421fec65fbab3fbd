"""LangGraph's streaming protocol, which `useStream` of `@langchain/react` uses: commands, and the events of a thread.

https://github.com/langchain-ai/agent-protocol/blob/main/streaming/protocol.cddl
"""

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter
from langgraph.types import StateSnapshot
from pydantic import Field
from pydantic_core import to_json
from starlette.responses import Response

from sleuth.graphs.core.answer_stream import MessageEvents
from sleuth.graphs.persistence.thread import Thread
from sleuth.studio.server.langgraph_api.forms import AssistantRunForm, CommandForm, JsonRoute
from sleuth.studio.server.langgraph_api.runs import start_run, starts_of
from sleuth.studio.server.langgraph_api.streams import Part, RunStream
from sleuth.studio.server.langgraph_api.threads import respond
from sleuth.studio.server.protocols.streaming import EventStream, encode_event
from sleuth.studio.server.schemas.runs import Body
from sleuth.studio.server.state import Access, AccessDep, ThreadDep
from sleuth.tools.errors import SleuthError, UsageError

router = APIRouter(prefix="/threads/{thread}", route_class=JsonRoute)

Channel = Literal["values", "updates", "checkpoints", "messages", "tools", "custom", "lifecycle", "input", "tasks"]

_MODES = {"values", "updates", "messages-tuple", "custom"}

_SEQUENCE = 8
"""Numbers of the protocol per event of the log: more than it has parts."""


class InterruptReply(Body):
    """The reply to an interrupt."""

    response: Any = None


class Parameters(AssistantRunForm, InterruptReply):
    """The parameters of all commands; `responses` has replies to several interrupts, of which a chat has one."""

    assistant_id: str = ""
    multitask_strategy: Literal["reject", "interrupt"] = "interrupt"
    responses: list[InterruptReply] = Field(default=[], max_length=1)


class Command(Body):
    """A request of a client."""

    id: int = Field(ge=0)
    method: str
    params: Parameters = Parameters()


class Subscription(Body):
    """Which events of a thread a client receives; those after the number `since`."""

    channels: list[Channel] = Field(min_length=1)
    namespaces: list[list[str]] | None = None
    since: int = Field(default=-1, ge=-1)

    @property
    def has_root(self) -> bool:
        """Return whether the client receives the events of the thread itself; sub-runs are separate threads."""
        return self.namespaces is None or [] in self.namespaces


@router.post("/commands")
async def command(thread: str, form: Command, access: AccessDep) -> Response:
    """Start a run, or reply to an interrupt."""
    try:
        result = await _carry_out(form, thread, access)
    except SleuthError as error:
        code = "invalid_argument" if isinstance(error, UsageError) else "unknown_error"
        return respond({"type": "error", "id": form.id, "error": code, "message": str(error)})
    if result is None:
        message = f"sleuth does not support the command {form.method}. It has run.start and input.respond."
        return respond({"type": "error", "id": form.id, "error": "not_supported", "message": message})
    meta = {"applied_through_seq": result.after * _SEQUENCE - 1}
    return respond({"type": "success", "id": form.id, "result": {"run_id": result.run}, "meta": meta})


async def _carry_out(form: Command, thread: str, access: Access) -> RunStream | None:
    """Return the run that a command has started; None for an unknown command."""
    params = form.params
    if form.method == "run.start":
        changes: dict[str, Any] = {"if_not_exists": "create", "checkpoint_id": params.configurable.checkpoint_id}
    elif form.method == "input.respond":
        reply = CommandForm(resume=(params.responses or [params])[0].response)
        changes = {"assistant_id": (await access.thread(thread)).method, "command": reply, "input": None}
    else:
        return None
    return await start_run(access, params.model_copy(update=changes), thread)


@router.post("/stream/events")
async def stream_events(thread: ThreadDep, form: Subscription, access: AccessDep) -> EventStream:
    """Stream the latest run of a thread, and the runs after it, until the client closes the connection."""

    async def encoded() -> AsyncGenerator[str]:
        yield ": connected\n\n"
        async for event in ThreadEvents(access, thread, form).follow():
            yield encode_event(to_json(event).decode(), event="message", id=event["event_id"])

    return EventStream.of(encoded())


@dataclass
class ThreadEvents:
    """The events of a thread for one client. Those that every client receives have the same numbers for each."""

    access: Access
    thread: Thread
    form: Subscription

    def __post_init__(self) -> None:
        self._seq = self._parts = 0
        self._messages = MessageEvents()
        self._interrupts: list[str] = []
        """Those that waited before the run: another client has answered them, or left them without an answer."""

    async def follow(self) -> AsyncGenerator[dict[str, Any]]:
        """Yield the events of the latest run and of all that follow, until the server shuts down."""
        thread, form = self.thread, self.form
        *earlier, after = await starts_of(self.access, thread)
        worker, log = self.access.server.run_worker, self.access.server.log
        if earlier and not await worker.is_running(thread.id) and await log.last(thread.id) == after:
            after = earlier[-1]
        if (turn := thread.options.turn) and turn.at:
            runs = self.access.runs
            before = await runs.graph(thread).aget_state(runs.config(thread, turn.at))
            self._interrupts = [interrupt.id for interrupt in before.interrupts]
        while not worker.is_closing:
            has_deltas = form.has_root and "messages" in form.channels
            run = RunStream(access=self.access, thread=thread, after=after, modes=_MODES, with_deltas=has_deltas)
            self._seq = after * _SEQUENCE
            async with aclosing(run.parts()) as parts:
                async for part in parts:
                    for event in self._events(part, run):
                        if form.has_root and event["channel"] in form.channels and event["seq"] > form.since:
                            yield {key: value for key, value in event.items() if key != "channel"}
            after, self._interrupts = run.position, [interrupt["id"] for interrupt in run.interrupts]
            await self._next_run(thread, after)
            thread = await self.access.thread(thread.id)

    async def _next_run(self, thread: Thread, after: int) -> None:
        """Wait for the first event after a run."""
        worker = self.access.server.run_worker

        async def is_open() -> bool:
            return not worker.is_closing

        events = self.access.server.log.follow(thread.id, after, is_active=is_open, ends=False)
        async with aclosing(events) as following:
            async for _ in following:
                return

    def _events(self, part: Part, run: RunStream) -> Iterator[dict[str, Any]]:
        match part.event:
            case "values" if "__interrupt__" in part.data:
                for interrupt in part.data["__interrupt__"]:
                    requested = {"interrupt_id": interrupt["id"], "payload": interrupt["value"]}
                    yield self._event("input", requested, method="input.requested")
            case "values":
                assert run.state
                yield self._event("checkpoints", _checkpoint(run.state))
                yield self._event("values", part.data)
            case "updates" if "__interrupt__" not in part.data:
                ((node, values),) = part.data.items()
                yield self._event("updates", {"node": node, "values": values})
            case "messages":
                events = self._messages.write(part.data[0])
                yield from (self._event("messages", data, is_counted=False) for data in events)
            case "custom":
                yield self._event("custom", {"payload": part.data}, is_counted=False)
            case "metadata" | "error" | "end":
                yield from self._lifecycle(part, run)

    def _lifecycle(self, part: Part, run: RunStream) -> Iterator[dict[str, Any]]:
        """Yield the beginning or the end of a run; at its beginning, also the interrupts that no longer wait."""
        match part.event:
            case "metadata":
                yield self._event("lifecycle", {"event": "running", "graph_name": run.thread.method})
                if self._interrupts:
                    ids = {"interrupt_ids": self._interrupts}
                    yield self._event("input", ids, method="input.answered", is_counted=False)
            case "error":
                yield self._event("lifecycle", {"event": "failed", "error": part.data["message"]})
            case _:
                waits = run.interrupts or part.data["status"] == "interrupted"
                yield self._event("lifecycle", {"event": "interrupted" if waits else "completed"})

    def _event(self, channel: str, data: Any, *, method: str = "", is_counted: bool = True) -> dict[str, Any]:  # noqa: ANN401 - JSON
        self._parts += 1
        self._seq += is_counted
        return {
            "type": "event",
            "channel": channel,
            "method": method or channel,
            "event_id": str(self._seq) if is_counted else f"{self._seq}.{self._parts}",
            "seq": self._seq,
            "params": {"namespace": [], "timestamp": int(time.time() * 1000), "data": data},
        }


def _checkpoint(state: StateSnapshot) -> dict[str, Any]:
    place, parent = state.config["configurable"], (state.parent_config or {}).get("configurable", {})
    parent_id = {"parent_id": parent["checkpoint_id"]} if parent.get("checkpoint_id") else {}
    metadata = state.metadata or {}
    return {
        "id": place["checkpoint_id"],
        **parent_id,
        "step": metadata.get("step", -1),
        "source": metadata.get("source", "loop"),
    }
