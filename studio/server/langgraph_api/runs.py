"""Runs: start, stream, join and cancel them. Runs continue without a client unless it asks otherwise."""

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Literal, get_args
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Query
from langchain_core.messages import convert_to_messages
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from sleuth.graphs.chat.sending import branch_chat, reply_to, send
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.thread import NAME, Thread
from sleuth.graphs.registry import configure, without_replies
from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.graphs.runs.history import fork_run
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.server.langgraph_api.assistants import find_graph
from sleuth.studio.server.langgraph_api.forms import AssistantRunForm, JsonRoute, Mode
from sleuth.studio.server.langgraph_api.streams import RunStream, run_id_of
from sleuth.studio.server.protocols.streaming import HEADERS, EventStream, with_keep_alive
from sleuth.studio.server.state import Access, AccessDep, ThreadDep
from sleuth.tools.errors import RunError, UnknownName, UsageError

router = APIRouter(route_class=JsonRoute)

RUNS_PATH = "/threads/{thread}/runs"

UNREADABLE = (ValueError, NotImplementedError, TypeError, KeyError, AttributeError)
"""Exceptions that LangChain raises for an invalid message."""


async def starts_of(access: Access, thread: Thread) -> list[int]:
    """Return the number of the event before each run of a thread, whose last run may have no events yet.

    A run, as LangGraph counts them, is a piece of the event log up to an answer, an error or a stop.
    """
    return [0, *await access.server.log.ends(thread.id)]


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
    worker, budget = access.server.run_worker, form.budget()
    await access.require_ready()
    stored = await (access.find if form.if_not_exists == "create" else access.thread)(name) if name else None
    id = stored.id if stored else access.scoped_id(name) if name else str(uuid4())
    thread = stored if stored and not stored.is_empty else None
    request = await _checked_request(access, form, thread, can_reply=name is not None)
    if form.multitask_strategy == "interrupt" and not form.is_reply and await worker.is_running(id):
        await worker.stop(id)
    await worker.require_idle(id)
    last = await access.server.log.last(id)
    runs = worker.runs(access.owner)
    if thread:
        await _continue(runs, thread, form, request)
    elif request:
        await send(runs, request.model_copy(update={"thread": id}))
    is_resumed = request is None and not form.is_reply
    await worker.begin(access.owner, id, budget=budget if is_resumed and budget != Budget() else None)
    begun = await access.runs.store.threads.get(id)
    return RunStream(access=access, thread=begun, after=last, modes={*form.stream_mode})


async def _checked_request(
    access: Access, form: AssistantRunForm, thread: Thread | None, *, can_reply: bool
) -> RunRequest | None:
    """Return the request for a run or a message; None for a reply or a run that is resumed.

    It raises what makes a request invalid before it stops or changes anything; `thread` has a run already.
    """
    kind, profile = find_graph(form.assistant_id), access.server.settings.profile
    values = {**form.settings(), **({} if can_reply else without_replies(kind))}
    if thread and thread.method != kind.name:
        raise UsageError(f"Thread {access.public_id(thread.id)} belongs to {thread.method}, not to {kind.name}.")
    if thread and form.place:
        await access.runs.state(thread, form.place)
    if thread and (form.input is None or form.is_reply):
        configure(kind, values, profile)
        return None
    text, message_id = _question(form, kind.name)
    about: dict[str, Any] = {"values": values, "profile": profile, "budget": form.budget()}
    request = RunRequest(question=text, method=kind.name, message_id=message_id, **about)
    if thread and kind.name != CHAT:
        raise RunError(f"Thread {access.public_id(thread.id)} has a question already. Start a new thread, or fork it.")
    return request


async def _continue(runs: RunService, thread: Thread, form: AssistantRunForm, request: RunRequest | None) -> None:
    """Store the next input of a thread, or a branch of it; without either it is resumed."""
    if form.is_reply and form.command:
        async with runs.hold(thread.id) as held:
            await reply_to(held, form.command.resume, checkpoint=form.place)
    elif request:
        async with runs.hold(thread.id) as held:
            await branch_chat(held, request, checkpoint=form.place, keep_settings=not request.values)
    elif form.place and form.place != checkpoint_id_of(await runs.state(thread)):
        await fork_run(runs, thread.id, at=form.place)


def _question(form: AssistantRunForm, method: str) -> tuple[str, str]:
    """Return the question of a run's input: its one message with the id that the client chose, or its field
    `question`, which only methods have.
    """
    inputs = form.input or {}
    if method != CHAT and "messages" not in inputs:
        if set(inputs) != {"question"} or not isinstance(inputs["question"], str):
            either = '{"question": "…"} or {"messages": [one message with the role "user"]}'
            raise UsageError(f"The input of {method} is {either}. It has no other fields.")
        return inputs["question"], ""
    value: Any = inputs.get("messages")
    try:
        messages = convert_to_messages(value if isinstance(value, list) else [value])
    except UNREADABLE:
        messages = []
    if len(messages) != 1 or messages[0].type != "human":
        raise UsageError(f'The input of {method} is {{"messages": [one new message with the role "user"]}}.')
    blocks = messages[0].content if isinstance(messages[0].content, list) else []
    if any(isinstance(block, dict) and block.get("type") != "text" for block in blocks):
        raise UsageError("A message contains text only: upload documents with `sleuth ingest` or POST /v1/documents.")
    id = messages[0].id or ""
    return str(messages[0].text), id if re.fullmatch(NAME, id) else ""


def _options(stream: RunStream, end: str, *, cancel: bool) -> dict[str, Any]:
    """Return the options of a response that lasts as long as a run; closing the connection before may `cancel` it.

    The headers name the run; paths are relative to the API.
    """
    path = f"/threads/{stream.public_id}/runs/{stream.run}"
    stop = partial(stream.access.server.run_worker.cancel_nowait, stream.thread.id, after=stream.after)
    headers = {"Content-Location": path, "Location": f"{path}/{end}", **HEADERS}
    return {"headers": headers, "on_disconnect": stop if cancel else lambda: None}


def _as_events(stream: RunStream, *, last_event: int = 0, cancel: bool) -> EventStream:
    parts = (part.encode() async for part in stream.parts(last_event))
    return EventStream.of(parts, **_options(stream, "stream", cancel=cancel))


def _as_values(stream: RunStream, *, cancel: bool = False) -> StreamingResponse:
    """Return the last values of a run as JSON, with white space before them until it has ended."""

    async def values() -> AsyncIterator[str]:
        stream.with_deltas = False
        async for _ in stream.parts():
            pass
        last = {"__error__": stream.failure} if stream.failure else dict(stream.values)
        yield to_json({**last, **({"__interrupt__": stream.interrupts} if stream.interrupts else {})}).decode()

    options = _options(stream, "join", cancel=cancel)
    body = with_keep_alive(values(), on_disconnect=options.pop("on_disconnect"), filler="\n")
    return StreamingResponse(body, media_type="application/json", **options)


async def _start(thread: ThreadDep, run: str, access: AccessDep) -> int:
    """Return the number of the event before a run; raise UnknownName if the run does not exist."""
    for after in await starts_of(access, thread):
        if run_id_of(thread.id, after) == run:
            return after
    raise UnknownName("run", run, [], "The first event of a stream, and the header Content-Location, name the run.")


StartDep = Annotated[int, Depends(_start)]


@router.post(f"{RUNS_PATH}/stream")
@router.post("/runs/stream")
async def stream_run(form: AssistantRunForm, access: AccessDep, thread: str | None = None) -> Response:
    """Start a run and stream it; without a thread, in a new one."""
    return _as_events(await start_run(access, form, thread), cancel=form.on_disconnect == "cancel")


@router.post(f"{RUNS_PATH}/wait")
@router.post("/runs/wait")
async def wait(form: AssistantRunForm, access: AccessDep, thread: str | None = None) -> Response:
    """Start a run and return its last values."""
    return _as_values(await start_run(access, form, thread), cancel=form.on_disconnect == "cancel")


@router.get(f"{RUNS_PATH}/{{run}}/join")
async def join(thread: ThreadDep, after: StartDep, access: AccessDep) -> Response:
    """Wait for the end of a run and return its last values."""
    return _as_values(RunStream(access=access, thread=thread, after=after, modes={"values"}))


@router.get(f"{RUNS_PATH}/{{run}}/stream")
async def join_stream(
    *,
    thread: ThreadDep,
    after: StartDep,
    access: AccessDep,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: bool = False,
    last_event_id: Annotated[int, Header(ge=-1, le=2**31 - 1)] = -1,
) -> Response:
    """Stream a run after `Last-Event-ID`, by default from its beginning and in all modes."""
    every = get_args(Mode)
    modes = {mode for value in stream_mode or every for mode in value.split(",")}
    if unknown := modes.difference(every):
        raise UsageError(f"stream_mode {sorted(unknown)[0]!r} is not supported. There are: {', '.join(every)}.")
    stream = RunStream(access=access, thread=thread, after=after, modes=modes)
    return _as_events(stream, last_event=max(last_event_id, 0), cancel=cancel_on_disconnect)


@router.post(f"{RUNS_PATH}/{{run}}/cancel")
async def cancel(
    thread: ThreadDep,
    after: StartDep,
    access: AccessDep,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Stop a run; its thread keeps the finished steps."""
    if action == "rollback":
        raise UsageError("action=rollback is not supported: use interrupt, and branch from an earlier checkpoint.")
    worker, latest = access.server.run_worker, (await starts_of(access, thread))[-1]
    if after == latest and await worker.is_running(thread.id):
        await worker.stop(thread.id)
    return Response(status_code=204 if wait else 202)
