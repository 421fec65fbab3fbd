"""Runs: start, stream, join and cancel them. Runs continue without a client unless it asks otherwise.

The event log of a run is the only source of its streams, so that a client that joins later, or reconnects with
`Last-Event-ID`, gets the same parts. States are read from the checkpoints: a step that starts names the checkpoint
before it.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args
from uuid import NAMESPACE_OID, uuid4, uuid5

from fastapi import APIRouter, Header, Query
from langgraph.types import StateSnapshot
from pydantic_core import from_json, to_json, to_jsonable_python
from starlette.responses import Response, StreamingResponse

from sleuth.graphs.chat.messages import reply_id_to
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.core.streaming import AnswerText
from sleuth.graphs.persistence.tables import NAME, Thread
from sleuth.graphs.registry import configure, runnable, without_replies
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.graphs.runs.history import fork_run
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of, find_graph
from sleuth.studio.server.langgraph_api.forms import AssistantRunForm, JsonRoute, Mode
from sleuth.studio.server.langgraph_api.threads import (
    UNREADABLE,
    interrupts_view,
    messages_in,
    values_of,
)
from sleuth.studio.server.runs.event_log import ENDS, Event
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.studio.server.state import Access, AccessDep, ThreadDep
from sleuth.tools.errors import RunError, UnknownName, UsageError

router = APIRouter(route_class=JsonRoute)

RUNS_PATH = "/threads/{thread}/runs"


def run_id_of(thread: str, after: int) -> str:
    """Return the id of the run whose events follow the event `after` of a thread."""
    return f"{str(uuid5(NAMESPACE_OID, thread))[:-8]}{after:08x}"


async def starts_of(access: Access, thread: Thread) -> list[int]:
    """Return the number of the event before each run of a thread, whose last run may have no events yet.

    A run, as LangGraph counts them, is a piece of the event log up to an answer, an error or a stop.
    """
    return [0, *await access.server.log.ends(thread.id)]


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


class MessageStream:
    """The messages of one run for one client.

    All chunks of an answer have the id that its message will have, so that clients join them.
    """

    def __init__(self) -> None:
        self._known: dict[str, object] | None = None
        self._id = ""
        self._answer = AnswerText()

    def write(self, reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what a delta adds to the text of the answer; a reset removes the text."""
        id = self._id or str(reply["call"])
        is_withdrawn, added = self._answer.read(reply)
        replaces_plan = self._answer.written == added and id in (self._known or {})
        if is_withdrawn or (added and replaces_plan):
            yield _removal(id)
        if added:
            yield {"type": "AIMessageChunk", "id": id, "content": added}

    def complete(self, messages: list[dict[str, Any]], *, is_final: bool) -> list[dict[str, Any]]:
        """Return the answer messages that a state adds or changes; if the text was streamed, only its rest."""
        known = self._known
        if known is None:  # the client has received none of this run
            known = {message["id"]: message["content"] for message in (messages[:-1] if is_final else messages)}
        self._known = {message["id"]: message["content"] for message in messages}
        found = []
        for message in messages:
            if message["type"] == "ai" and known.get(message["id"]) != message["content"]:
                found += self._whole(message, known.get(message["id"]))
        asked = next((each["id"] for each in reversed(messages) if each["type"] == "human"), None)
        self._id = reply_id_to(asked) if asked else ""
        return found

    def _whole(self, message: dict[str, Any], known: object) -> list[dict[str, Any]]:
        written = self._answer.written if message["id"] == self._id else ""
        shown = written or str(known or "")
        self._answer = AnswerText()
        if shown and message["content"].startswith(shown):
            return [{**message, "type": "AIMessageChunk", "content": message["content"][len(shown) :]}]
        return [*([_removal(message["id"])] if shown else []), message]


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
                parts = self._wanted(await self._encode(event))
                for at, part in enumerate(parts, start=1):
                    yield Part(part.event, part.data, event.id if at == len(parts) else 0)
                if event.name in ENDS:
                    return
        if (await self.access.thread(self.public_id)).state in ("done", "waiting"):  # it only repeated an answer
            for part in self._wanted(await self._end("", is_stopped=False)):
                yield part

    def _wanted(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts of the stream modes that the client wants, and those of every mode."""
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


async def start_run(access: Access, form: AssistantRunForm, name: str | None) -> RunStream:
    """Start a run in the background, in a thread of the owner or in a new one, and return its stream.

    Args:
        access: the threads of the owner.
        form: the request.
        name: the thread, or None for a new one that the client does not continue.

    Raises:
        UnknownName: there is no such assistant, thread or checkpoint.
        UsageError: the input or a setting cannot be used, or the owner has no documents.
        RunError: the thread has a question already, or is running.
        QuotaUsedUp: the owner's daily token quota is exhausted.
    """
    server, method = access.server, find_graph(form.assistant_id).name
    # A client that keeps no thread cannot reply.
    settings = {**form.settings(), **(without_replies(runnable(method)) if name is None else {})}
    await access.require_ready()
    is_new = name is None or (form.if_not_exists == "create" and await access.find(name) is None)
    thread = None if is_new else await access.thread(str(name))
    id = thread.id if thread else access.scoped_id(name) if name else str(uuid4())
    has_run = thread is not None and not thread.is_empty
    request = await _checked_request(access, form, settings, id, thread if has_run else None)
    if form.multitask_strategy == "interrupt" and not form.is_reply and await server.run_worker.is_running(id):
        await server.run_worker.stop(id)
    await server.run_worker.require_idle(id)
    last = await server.log.last(id)
    if thread and has_run:
        await _continue(access, thread, form, request)
    elif request:
        await access.runs.start(request)
    budget = form.budget() if form.input is None and not form.is_reply and form.budget() != Budget() else None
    await server.run_worker.start(access.owner, id, budget=budget)
    begun = await access.runs.store.threads.get(id)
    return RunStream(access=access, thread=begun, after=last, modes={*form.stream_mode})


async def _checked_request(
    access: Access, form: AssistantRunForm, settings: dict[str, Any], id: str, thread: Thread | None
) -> RunRequest | None:
    """Return the request for a run or a message; None for a reply or a run that is resumed.

    It raises what makes a request invalid before it stops or changes anything; `thread` has a run already.
    """
    kind, profile, budget = find_graph(form.assistant_id), access.server.settings.profile, form.budget()
    method = kind.name
    configure(kind, settings, profile)
    if thread and thread.method != method:
        raise UsageError(f"Thread {access.public_id(thread.id)} belongs to {thread.method}, not to {method}.")
    if thread and form.place:
        await access.runs.state(thread, form.place)
    if thread and (form.input is None or form.is_reply):
        return None
    text, message_id = _question(form, method)
    parameters: dict[str, Any] = {"values": settings, "profile": profile, "budget": budget}
    request = RunRequest(question=text, method=method, thread=id, message_id=message_id, **parameters)
    if thread and method != CHAT:
        raise RunError(f"Thread {access.public_id(thread.id)} has a question already. Start a new thread, or fork it.")
    return request


async def _continue(access: Access, thread: Thread, form: AssistantRunForm, request: RunRequest | None) -> None:
    """Store the next input of a thread, or a branch of it; without either it is resumed."""
    if form.is_reply and form.command:
        await access.runs.reply(thread.id, form.command.resume, checkpoint=form.place)
    elif request:
        await access.runs.branch_chat(thread, request, checkpoint=form.place, keep_settings=not request.values)
    elif form.place:
        latest = (await access.runs.state(thread)).config["configurable"].get("checkpoint_id")
        if form.place != latest:
            await fork_run(access.runs, thread.id, at=form.place)


def _question(form: AssistantRunForm, method: str) -> tuple[str, str]:
    """Return the question of a run's input: its one message with the id that the client has given to it, or its field
    `question`, which only methods have.
    """
    given = form.input or {}
    if method != CHAT and "messages" not in given:
        if set(given) != {"question"} or not isinstance(given["question"], str):
            either = '{"question": "…"} or {"messages": [one message with the role "user"]}'
            raise UsageError(f"The input of {method} is {either}. It has no other fields.")
        return given["question"], ""
    try:
        found = messages_in(given.get("messages"))
    except UNREADABLE:
        found = []
    if len(found) != 1 or found[0].type != "human":
        raise UsageError(f'The input of {method} is {{"messages": [one new message with the role "user"]}}.')
    blocks = found[0].content if isinstance(found[0].content, list) else []
    if any(isinstance(block, dict) and block.get("type") != "text" for block in blocks):
        raise UsageError("A message contains text only: upload documents with `sleuth ingest` or POST /v1/documents.")
    id = found[0].id or ""
    return str(found[0].text), id if re.fullmatch(NAME, id) else ""


def _start_of(run: str, thread: Thread, starts: Sequence[int]) -> int:
    """Return which of the starts is that of a run; raise UnknownName if the run does not exist."""
    for after in starts:
        if run_id_of(thread.id, after) == run:
            return after
    raise UnknownName("run", run, [], "The first event of a stream, and the header Content-Location, name the run.")


def _as_events(stream: RunStream, *, last_event: int = 0, cancel: bool) -> StreamingResponse:
    """Return the parts of a run as server-sent events."""
    chunks = (part.encode() async for part in stream.parts(last_event))
    return _response(stream, chunks, end="stream", cancel=cancel, media_type="text/event-stream")


def _as_values(stream: RunStream, *, cancel: bool = False) -> StreamingResponse:
    """Return the last values of a run as JSON, with white space before them until it has ended."""

    async def values() -> AsyncIterator[str]:
        stream.with_deltas = False
        async for _ in stream.parts():
            pass
        last = {"__error__": stream.failure} if stream.failure else dict(stream.values)
        yield to_json({**last, **({"__interrupt__": stream.interrupts} if stream.interrupts else {})}).decode()

    return _response(stream, values(), end="join", cancel=cancel, media_type="application/json", filler="\n")


def _response(
    stream: RunStream, chunks: AsyncIterator[str], *, end: str, cancel: bool, media_type: str, **options: str
) -> StreamingResponse:
    """Return a response that lasts as long as a run; closing the connection before stops it with `cancel`.

    The headers name the run; paths are relative to the API.
    """

    def stop() -> None:
        if cancel:
            stream.access.server.run_worker.cancel_nowait(stream.thread.id, after=stream.after)

    path = f"/threads/{stream.public_id}/runs/{stream.run}"
    headers = {"Content-Location": path, "Location": f"{path}/{end}", "Cache-Control": "no-store"}
    body = with_keep_alive(chunks, on_disconnect=stop, **options)
    return StreamingResponse(body, media_type=media_type, headers=headers)


@router.post(f"{RUNS_PATH}/stream")
@router.post("/runs/stream")
async def stream_run(form: AssistantRunForm, access: AccessDep, thread: str | None = None) -> Response:
    """Start a run and stream it; without a thread it gets one of its own."""
    return _as_events(await start_run(access, form, thread), cancel=form.on_disconnect == "cancel")


@router.post(f"{RUNS_PATH}/wait")
@router.post("/runs/wait")
async def wait(form: AssistantRunForm, access: AccessDep, thread: str | None = None) -> Response:
    """Start a run and return its last values."""
    return _as_values(await start_run(access, form, thread), cancel=form.on_disconnect == "cancel")


@router.get(f"{RUNS_PATH}/{{run}}/join")
async def join(thread: ThreadDep, run: str, access: AccessDep) -> Response:
    """Wait for the end of a run and return its last values."""
    after = _start_of(run, thread, await starts_of(access, thread))
    return _as_values(RunStream(access=access, thread=thread, after=after, modes={"values"}))


@router.get(f"{RUNS_PATH}/{{run}}/stream")
async def join_stream(
    *,
    thread: ThreadDep,
    run: str,
    access: AccessDep,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: bool = False,
    last_event_id: Annotated[int, Header(ge=-1, le=2**31 - 1)] = -1,
) -> Response:
    """Stream a run after `Last-Event-ID`, by default from its beginning and in all modes."""
    every = get_args(Mode)
    modes = {mode for given in stream_mode or every for mode in given.split(",")}
    if unknown := modes.difference(every):
        raise UsageError(f"stream_mode {sorted(unknown)[0]!r} is not supported. There are: {', '.join(every)}.")
    after = _start_of(run, thread, await starts_of(access, thread))
    stream = RunStream(access=access, thread=thread, after=after, modes=modes)
    return _as_events(stream, last_event=max(last_event_id, 0), cancel=cancel_on_disconnect)


@router.post(f"{RUNS_PATH}/{{run}}/cancel")
async def cancel(
    thread: ThreadDep,
    run: str,
    access: AccessDep,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Stop a run; its thread keeps the finished steps."""
    if action == "rollback":
        raise UsageError("action=rollback is not supported: use interrupt, and branch from an earlier checkpoint.")
    starts = await starts_of(access, thread)
    if _start_of(run, thread, starts) == starts[-1] and await access.server.run_worker.is_running(thread.id):
        await access.server.run_worker.stop(thread.id)
    return Response(status_code=204 if wait else 202)
