"""Encoder of LangGraph Server's streams: the parts of a run in the stream modes that a client wants.

The event log of a run is the only source of its streams, so that a client that joins later, or reconnects with
`Last-Event-ID`, gets the same parts. States are read from the checkpoints: a step that starts names the checkpoint
before it.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.types import Interrupt, StateSnapshot
from pydantic_core import from_json, to_json, to_jsonable_python

from sleuth.graphs.chat.messages import reply_id_to, run_message
from sleuth.graphs.core.answer_stream import AnswerText
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.threads import Thread
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of
from sleuth.studio.server.protocols.streaming import encode_event
from sleuth.studio.server.runs.event_log import ENDS, Event
from sleuth.studio.server.state import Access


def run_id_of(thread: str, after: int) -> str:
    """Return the id of the run whose events follow the event `after` of a thread."""
    return f"{str(uuid5(NAMESPACE_OID, thread))[:-8]}{after:08x}"


def values_of(state: StateSnapshot, thread: Thread) -> dict[str, Any]:
    """Return the values of a state; those of a method have its question and its answer as messages, too."""
    values: dict[str, Any] = state.values
    if not values.get("question") or thread.method == CHAT:
        return values
    messages: list[AnyMessage] = [HumanMessage(values["question"], id=f"question of {thread.id}")]
    if verdict := values.get("verdict"):
        about = {"status": verdict["status"], "citations": verdict["citations"]}
        messages.append(run_message(values, about, id=reply_id_to(messages[0].id)))
    return {**values, "messages": messages}


def interrupts_view(interrupts: Iterable[Interrupt]) -> list[dict[str, Any]]:
    """Return interrupts that wait for a reply."""
    return [{"id": each.id, "value": each.value, "response_schema": each.response_schema} for each in interrupts]


@dataclass(frozen=True, slots=True)
class Part:
    """One server-sent event; the last part of an event of the log has its number."""

    event: str
    data: Any
    id: int = 0

    def encode(self) -> str:
        """Return the part as it is sent."""
        return encode_event(to_json(self.data).decode(), event=self.event, id=self.id)


class MessageStream:
    """The messages of one run for one client.

    All chunks of an answer have the id that its message will have, so that clients join them.
    """

    def __init__(self) -> None:
        self._contents: dict[str, str] | None = None
        self._id = ""
        self._answer = AnswerText()

    def write(self, reply: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what a delta adds to the text of the answer; a reset removes the text."""
        return self._answer.read(reply, self._id or str(reply["call"]))

    def complete(self, messages: list[dict[str, Any]], *, is_final: bool) -> list[dict[str, Any]]:
        """Return the answer messages that a state adds or changes; if the text was streamed, only the missing part."""
        contents = self._contents
        if contents is None:  # the client has received none of this run
            contents = {message["id"]: message["content"] for message in (messages[:-1] if is_final else messages)}
        self._contents = {message["id"]: message["content"] for message in messages}
        changes = []
        for message in messages:
            before = contents.get(message["id"], "")
            if message["type"] == "ai" and before != message["content"]:
                answer = self._answer if message["id"] == self._id else AnswerText(before)
                changes += answer.replace(message)
        question = next((message["id"] for message in reversed(messages) if message["type"] == "human"), None)
        if question and (id := reply_id_to(question)) != self._id:
            self._id, self._answer = id, AnswerText(self._contents.get(id, ""))
        return changes


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
    _messages: MessageStream = field(default_factory=MessageStream)

    def __post_init__(self) -> None:
        self.run = run_id_of(self.thread.id, self.after)
        self.position = self.after
        self.public_id = self.access.public_id(self.thread.id)

    async def parts(self, last_event: int = 0) -> AsyncGenerator[Part]:
        """Yield the parts after an event of the log, to the end of the run; end early if the server shuts down."""
        if last_event <= self.after:
            yield Part("metadata", {"run_id": self.run, "attempt": 1})
        log = self.access.follow(self.thread.id, max(last_event, self.after), with_deltas=self.with_deltas)
        async with aclosing(log) as events:
            async for event in events:
                self.position = event.id or self.position
                parts = self._select(await self._encode(event))
                for at, part in enumerate(parts, start=1):
                    yield Part(part.event, part.data, event.id if at == len(parts) else 0)
                if event.name in ENDS:
                    return
        if (await self.access.thread(self.public_id)).state in ("done", "waiting"):  # it only repeated an answer
            for part in self._select(await self._end("", is_stopped=False)):
                yield part

    def _select(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts of the client's stream modes, and those of every mode."""
        names = {"error", "end", *("messages" if mode == "messages-tuple" else mode for mode in self.modes)}
        return [part for part in parts if part.event in names]

    async def _encode(self, event: Event) -> list[Part]:
        data = from_json(event.data)
        match event.name:
            case "step":
                return await self._step(data, event.key.split()[0])
            case "delta" | "reset":
                return [Part("custom", data), *self._message_parts(self._messages.write(data), data["node"])]
            case "error":
                self.failure = {"error": data["type"], "message": data["message"]}
                return [Part("error", self.failure)]
            case _:
                return await self._end(str(data.get("checkpoint", "")), is_stopped=event.name == "stopped")

    async def _step(self, step: dict[str, Any], task: str) -> list[Part]:
        if step["thread"] != self.thread.id:
            return [Part("custom", step)]
        if step["state"] == "finished":
            return [Part("updates", {step["node"]: step["update"]})]
        state = await self._state_before(task)
        return self._state(state, is_final=False) if state else []

    def _state(self, state: StateSnapshot, *, is_final: bool) -> list[Part]:
        """Return the values of a state once, and before them the messages that it adds."""
        if self.state and checkpoint_id_of(self.state) == checkpoint_id_of(state) and not is_final:
            return []
        self.state, self.values = state, to_jsonable_python(values_of(state, self.thread))
        added = self._messages.complete(self.values.get("messages") or [], is_final=is_final)
        return [*self._message_parts(added, "answer"), Part("values", self.values)]

    async def _end(self, checkpoint: str, *, is_stopped: bool) -> list[Part]:
        runs = self.access.runs
        state = await runs.graph(self.thread).aget_state(runs.config(self.thread, checkpoint or None))
        parts = self._state(state, is_final=True)
        self.interrupts = to_jsonable_python(interrupts_view(state.interrupts))
        if self.interrupts:
            parts += [Part(mode, {"__interrupt__": self.interrupts}) for mode in ("values", "updates")]
        return [*parts, Part("end", {"run_id": self.run, "status": "interrupted" if is_stopped else "success"})]

    def _message_parts(self, messages: Iterable[dict[str, Any]], node: str) -> list[Part]:
        """Return messages with metadata of the node that writes them."""
        metadata = {
            "run_id": self.run,
            "thread_id": self.public_id,
            "graph_id": self.thread.method,
            "assistant_id": assistant_id_of(self.thread.method),
            "langgraph_node": node,
        }
        return [Part("messages", (message, metadata)) for message in messages]

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
