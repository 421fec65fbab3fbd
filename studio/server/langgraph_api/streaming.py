"""A run's events as the parts of LangGraph's streams.

The event log of the run is the only source, so that a client that joins later, or reconnects with `Last-Event-ID`, gets
the same parts. States are read from the checkpoints: a step that starts names the checkpoint before it.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langgraph.types import StateSnapshot
from pydantic_core import from_json, to_json, to_jsonable_python

from sleuth.agents.llm.token_stream import AnswerText
from sleuth.graphs.chat.messages import reply_id_to
from sleuth.graphs.persistence import Thread
from sleuth.studio.server.langgraph_api.access import Access
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of
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


Message = tuple[dict[str, Any], dict[str, Any]]


class MessageStream:
    """The messages of one run for one client, each with metadata of the node that writes it.

    All chunks of an answer have the id that its message will have, so that clients join them.
    """

    def __init__(self, metadata: Callable[[str], dict[str, Any]]) -> None:
        self._metadata = metadata
        self._known: dict[str, object] | None = None
        self._id = ""
        self._answer = AnswerText()

    def write(self, reply: dict[str, Any]) -> Iterator[Message]:
        """Yield what a delta adds to the text of the answer; a reset removes the text."""
        id, about = self._id or str(reply["call"]), self._metadata(reply["node"])
        is_withdrawn, added = self._answer.read(reply)
        replaces_plan = self._answer.written == added and id in (self._known or {})
        if is_withdrawn or (added and replaces_plan):
            yield _removal(id), about
        if added:
            yield {"type": "AIMessageChunk", "id": id, "content": added}, about

    def complete(self, messages: list[dict[str, Any]], *, is_final: bool) -> list[Message]:
        """Return the messages of ours that a state adds or changes; of one whose text was streamed, the rest of it."""
        now = {message["id"]: message["content"] for message in messages}
        known = self._known
        if known is None:  # the client has received none of this run
            known = {message["id"]: message["content"] for message in (messages[:-1] if is_final else messages)}
        added = [each for each in messages if each["type"] == "ai" and known.get(each["id"]) != each["content"]]
        self._known = now
        asked = next((each["id"] for each in reversed(messages) if each["type"] == "human"), None)
        found = [part for message in added for part in self._whole(message, is_known=message["id"] in known)]
        self._id = reply_id_to(asked) if asked else ""
        return found

    def _whole(self, message: dict[str, Any], *, is_known: bool) -> Iterator[Message]:
        about, text, written = self._metadata("answer"), message["content"], self._answer.written
        if message["id"] == self._id and written and text.startswith(written):
            yield {**message, "type": "AIMessageChunk", "content": text[len(written) :]}, about
        else:
            if is_known or (written and message["id"] == self._id):
                yield _removal(message["id"]), about
            yield message, about
        self._answer = AnswerText()


def _removal(id: str) -> dict[str, Any]:
    return {"type": "remove", "id": id, "content": ""}


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
        server = self.access.server
        log = server.log.follow(
            self.thread.id,
            max(last_event, self.after),
            is_active=partial(server.run_worker.is_active, self.thread.id),
            with_deltas=self.with_deltas,
        )
        async with aclosing(log) as events:
            async for event in events:
                self.position = event.id or self.position
                parts = await self._encode(event)
                for at, part in enumerate(parts, start=1):
                    yield Part(part.event, part.data, event.id if at == len(parts) else 0)
                if is_last(event):
                    return
        for part in await self._end_without_event():
            yield part

    async def _encode(self, event: Event) -> list[Part]:
        data = from_json(event.data)
        match event.name:
            case "step":
                return await self._step(data, event.key.split()[0])
            case "delta" | "reset":
                return self._reply(data)
            case "error":
                self.failure = {"error": data["type"], "message": data["message"]}
                return [Part("error", self.failure)]
            case _:
                return await self._end(str(data.get("checkpoint", "")), is_stopped=event.name == "stopped")

    async def _step(self, step: dict[str, Any], task: str) -> list[Part]:
        outer, started = step["thread"] == self.thread.id, step["state"] == "started"
        parts = self._state(await self._state_before(task), is_final=False) if outer and started else []
        if outer and not started:
            parts += self._in_mode("updates", {step["node"]: step["update"]})
        if not outer:
            parts += self._in_mode("custom", step)
        return parts + self._in_mode("events", self._langchain_event(step, "start" if started else "end"))

    def _reply(self, reply: dict[str, Any]) -> list[Part]:
        parts = self._in_mode("custom", reply)
        if "messages-tuple" in self.modes:
            parts += [Part("messages", message) for message in self._messages.write(reply)]
        if "text" in reply:
            parts += self._in_mode("events", self._langchain_event(reply, "stream"))
        return parts

    def _state(self, state: StateSnapshot | None, *, is_final: bool) -> list[Part]:
        """Return the values of a state once, and before them the messages that it adds."""
        id = str(state.config["configurable"].get("checkpoint_id", "")) if state else ""
        if state is None or (id == self._shown and not is_final):
            return []
        self._shown, self.state, self.values = id, state, to_jsonable_python(values_of(state, self.thread))
        added = self._messages.complete(self.values.get("messages") or [], is_final=is_final)
        messages = [Part("messages", message) for message in added if "messages-tuple" in self.modes]
        return messages + self._in_mode("values", self.values)

    async def _end(self, checkpoint: str, *, is_stopped: bool) -> list[Part]:
        runs = self.access.runs
        state = await runs.graph(self.thread).aget_state(runs.config(self.thread, checkpoint or None))
        parts = self._state(state, is_final=True)
        self.interrupts = to_jsonable_python(interrupts_view(state.interrupts))
        if self.interrupts:
            for mode in ("values", "updates"):
                parts += self._in_mode(mode, {"__interrupt__": self.interrupts})
        return [*parts, Part("end", {"run_id": self.run, "status": "interrupted" if is_stopped else "success"})]

    async def _end_without_event(self) -> list[Part]:
        """Return the end of a run that only repeated an answer, which is no new event."""
        server, row = self.access.server, await self.access.thread(self._public_id)
        active = await server.run_worker.is_running(row.id)
        run = read_run(row, await server.log.after(row.id, self.after), self.after, is_active=active)
        return await self._end("", is_stopped=False) if run.status == "success" else []

    def _in_mode(self, mode: str, data: dict[str, Any]) -> list[Part]:
        """Return the part of a stream mode, if the client wants it."""
        return [Part(mode, data)] if mode in self.modes else []

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
