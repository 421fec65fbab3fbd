"""A run's events as the parts of LangGraph's streams.

The event log of the run is the only source, so that a client that joins later, or reconnects with `Last-Event-ID`, gets
the same parts. States are read from the checkpoints: a step that starts names the checkpoint before it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langgraph.types import StateSnapshot
from pydantic_core import from_json, to_json, to_jsonable_python

from sleuth.graphs.persistence import Thread
from sleuth.studio.server.langgraph_api.access import Access
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of
from sleuth.studio.server.langgraph_api.messages import MessageStream
from sleuth.studio.server.langgraph_api.run_ids import is_last, read_run, run_id_of
from sleuth.studio.server.langgraph_api.views import interrupts_view, values_of
from sleuth.studio.server.runs import Event


@dataclass(frozen=True, slots=True)
class Part:
    """One server-sent event; the last part of an event of the log has its number."""

    event: str
    data: Any
    id: int = 0

    def encode(self) -> str:
        """Return the part as it is sent."""
        id = f"id: {self.id}\n" if self.id else ""
        return f"event: {self.event}\ndata: {to_json(self.data).decode()}\n{id}\n"


@dataclass(kw_only=True)
class RunStream:
    """The stream of one run for one client.

    Attributes:
        access: the threads of the owner.
        thread: the thread of the run.
        after: the event before the first one of the run.
        modes: the stream modes.
        with_deltas: also stream tokens of replies that are being written.
        failure: the error that ended the run.
        position: the number of the last event that was read.
        state: the latest state whose values were streamed, which are `values`.
        interrupts: those that wait for a reply at the end of the run.
    """

    access: Access
    thread: Thread
    after: int
    modes: set[str]
    with_deltas: bool = True
    failure: dict[str, Any] | None = None
    state: StateSnapshot | None = None
    values: dict[str, Any] = field(default_factory=dict)
    interrupts: list[dict[str, Any]] = field(default_factory=list)
    _states: dict[str, StateSnapshot] = field(default_factory=dict)
    _shown: str = ""
    _messages: MessageStream = field(init=False)

    def __post_init__(self) -> None:
        self.run = run_id_of(self.thread.id, self.after)
        self.position = self.after
        self._public_id = self.access.public_id(self.thread.id)
        self._messages = MessageStream(self._metadata)

    async def parts(self, last_event: int = 0) -> AsyncGenerator[Part]:
        """Yield the parts after an event of the log, to the end of the run; end early if the server shuts down."""
        if last_event <= self.after:
            yield Part("metadata", {"run_id": self.run, "attempt": 1})
        async with aclosing(self._follow(max(last_event, self.after))) as events:
            async for event in events:
                self.position = event.id or self.position
                parts = [part async for part in self._parts_of(event)]
                for at, part in enumerate(parts, start=1):
                    yield Part(part.event, part.data, event.id if at == len(parts) else 0)
                if is_last(event):
                    return
        async for part in self._end_without_event():
            yield part

    def _follow(self, after: int) -> AsyncGenerator[Event]:
        server = self.access.server
        active = partial(server.run_worker.is_active, self.thread.id)
        return server.log.follow(self.thread.id, after, is_active=active, with_deltas=self.with_deltas)

    async def _parts_of(self, event: Event) -> AsyncIterator[Part]:
        data = from_json(event.data)
        match event.name:
            case "step":
                async for part in self._step(data, event.key.split()[0]):
                    yield part
            case "delta" | "reset":
                for part in self._reply(data):
                    yield part
            case "error":
                self.failure = {"error": data["type"], "message": data["message"]}
                yield Part("error", self.failure)
            case "answer" | "stopped":
                async for part in self._end(str(data.get("checkpoint", "")), is_stopped=event.name == "stopped"):
                    yield part

    async def _step(self, step: dict[str, Any], task: str) -> AsyncIterator[Part]:
        outer, started = step["thread"] == self.thread.id, step["state"] == "started"
        if outer and started:
            async for part in self._state(await self._state_before(task), is_final=False):
                yield part
        elif outer and "updates" in self.modes:
            yield Part("updates", {step["node"]: step["update"]})
        if not outer and "custom" in self.modes:
            yield Part("custom", step)
        if "events" in self.modes:
            yield Part("events", self._langchain_event(step, "start" if started else "end"))

    def _reply(self, reply: dict[str, Any]) -> Iterator[Part]:
        if "custom" in self.modes:
            yield Part("custom", reply)
        if "messages-tuple" in self.modes:
            yield from (Part("messages", message) for message in self._messages.write(reply))
        if "events" in self.modes and "text" in reply:
            yield Part("events", self._langchain_event(reply, "stream"))

    async def _state(self, state: StateSnapshot | None, *, is_final: bool) -> AsyncIterator[Part]:
        """Yield the values of a state once, and before them the messages that it adds."""
        id = str(state.config["configurable"].get("checkpoint_id", "")) if state else ""
        if state is None or (id == self._shown and not is_final):
            return
        self._shown, self.state, self.values = id, state, to_jsonable_python(values_of(state, self.thread))
        added = self._messages.complete(self.values.get("messages") or [], is_final=is_final)
        if "messages-tuple" in self.modes:
            for message in added:
                yield Part("messages", message)
        if "values" in self.modes:
            yield Part("values", self.values)

    async def _end(self, checkpoint: str, *, is_stopped: bool) -> AsyncIterator[Part]:
        runs = self.access.runs
        state = await runs.graph(self.thread).aget_state(runs.config(self.thread, checkpoint or None))
        async for part in self._state(state, is_final=True):
            yield part
        self.interrupts = to_jsonable_python(interrupts_view(state.interrupts))
        for mode in ("values", "updates"):
            if self.interrupts and mode in self.modes:
                yield Part(mode, {"__interrupt__": self.interrupts})
        yield Part("end", {"run_id": self.run, "status": "interrupted" if is_stopped else "success"})

    async def _end_without_event(self) -> AsyncIterator[Part]:
        """Yield the end of a run that only repeated an answer, which is no new event."""
        server, row = self.access.server, await self.access.thread(self._public_id)
        active = await server.run_worker.is_running(row.id)
        run = read_run(row, await server.log.after(row.id, self.after), self.after, is_active=active)
        if run.status == "success":
            async for part in self._end("", is_stopped=False):
                yield part

    async def _state_before(self, task: str) -> StateSnapshot | None:
        """Return the state in which a node execution began; None if its checkpoint was pruned."""
        graph, config = self.access.runs.graph(self.thread), self.access.runs.config(self.thread)
        latest = await graph.aget_state(config)
        if any(each.id == task for each in latest.tasks):  # read it without what the node has returned meanwhile
            return await graph.aget_state(latest.config)
        if task not in self._states:
            async for state in graph.aget_state_history(config):
                self._states |= {each.id: state for each in state.tasks}
        return self._states.get(task)

    def _metadata(self, node: str) -> dict[str, Any]:
        return {
            "run_id": self.run,
            "thread_id": self._public_id,
            "graph_id": self.thread.method,
            "assistant_id": assistant_id_of(self.thread.method),
            "langgraph_node": node,
        }

    def _langchain_event(self, item: dict[str, Any], kind: str) -> dict[str, Any]:
        """Return a step or a token as an event of LangChain's `astream_events`."""
        chunk = {"chunk": {"type": "AIMessageChunk", "id": item.get("call"), "content": item.get("text", "")}}
        data = {"start": {}, "end": {"output": item.get("update", {})}, "stream": chunk}[kind]
        return {
            "event": f"on_{'chat_model' if kind == 'stream' else 'chain'}_{kind}",
            "name": item["role"] if kind == "stream" else item["node"],
            "run_id": item.get("call") or self.run,
            "tags": [],
            "metadata": {**self._metadata(item["node"]), "sleuth_thread": item["thread"]},
            "parent_ids": [],
            "data": data,
        }
