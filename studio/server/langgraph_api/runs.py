"""Runs: start, stream, wait, join, list and cancel them. Runs continue without a client unless it asks otherwise."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import NAME, Thread
from sleuth.graphs.registry import CHAT, runnable, without_replies
from sleuth.graphs.runs import check_question, fork_run
from sleuth.graphs.runs.chat_turns import Reply, add_turn
from sleuth.studio.server.access import Access, AccessDep
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of, find_graph
from sleuth.studio.server.langgraph_api.forms import MODES, AssistantRunForm, JsonRoute
from sleuth.studio.server.langgraph_api.streaming import Run, RunStream, runs_of
from sleuth.studio.server.langgraph_api.threads import (
    UNREADABLE,
    create_thread,
    is_empty,
    messages_in,
    respond,
)
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.tools.errors import RunError, UnknownName, UsageError

router = APIRouter(route_class=JsonRoute)

RunsPath = "/threads/{name}/runs"
EVENTS = "text/event-stream"


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
    if name is None or (form.if_not_exists == "create" and await access.find(name) is None):
        thread = await create_thread(access, name, {})
    else:
        thread = await access.thread(name)
    await access.require_ready()
    if form.multitask_strategy == "interrupt" and await server.run_worker.is_running(thread.id):
        await server.run_worker.stop(thread.id)
    await server.run_worker.require_idle(thread.id)
    last = await server.log.last(thread.id)
    await (_begin if is_empty(thread) else _continue)(access, thread, form, method, settings)
    budget = form.budget() if form.input is None and not form.is_reply and form.budget() != Budget() else None
    await server.run_worker.start(access.owner, thread.id, budget=budget)
    begun = await access.runs.store.threads.get(thread.id)
    return RunStream(access=access, thread=begun, after=last, modes=form.modes)


async def _begin(access: Access, thread: Thread, form: AssistantRunForm, method: str, settings: dict[str, Any]) -> None:
    """Replace the row of an empty thread with that of its first run."""
    text, message_id = _question(form, method)
    question, threads, profile = check_question(text), access.runs.store.threads, access.server.settings.profile
    find_graph(method).configure(settings, profile)  # raises before the row is removed
    await threads.remove(thread.id)
    about: dict[str, Any] = {"values": settings, "profile": profile, "budget": form.budget(), "thread": thread.id}
    await access.runs.start(question, method, **about)
    options = (await threads.get(thread.id)).options
    update: dict[str, Any] = {"langgraph_metadata": thread.options.langgraph_metadata}
    if options.turn:
        update["turn"] = options.turn.model_copy(update={"id": message_id})
    await threads.set_options(thread.id, options.model_copy(update=update))


async def _continue(
    access: Access, thread: Thread, form: AssistantRunForm, method: str, settings: dict[str, Any]
) -> None:
    """Store the next input of a thread, or a branch of it; without either it is resumed."""
    if thread.method != method:
        raise UsageError(f"Thread {access.public_id(thread.id)} belongs to {thread.method}, not to {method}.")
    if form.is_reply or (method == CHAT.name and form.input is not None):
        reply = Reply(value=form.command.resume) if form.command and form.is_reply else None
        text, message_id = ("", "") if reply else _question(form, method)
        await add_turn(
            access.runs,
            thread,
            reply or check_question(text),
            start=form.place,
            message_id=message_id,
            values=settings or thread.options.values,
            budget=form.budget(),
        )
    elif form.input is not None:
        raise RunError(f"Thread {access.public_id(thread.id)} has a question already. Start a new thread, or fork it.")
    elif form.place:
        latest = (await access.runs.state(thread)).config["configurable"].get("checkpoint_id")
        if form.place != latest:
            await fork_run(access.runs, thread.id, at=form.place)


def _question(form: AssistantRunForm, method: str) -> tuple[str, str]:
    """Return the question of a run's input: its one message with the id that the client has given to it, or its field
    `question`, which only methods have.
    """
    given = form.input or {}
    if method != CHAT.name and "messages" not in given:
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


async def _run(access: Access, thread: Thread, id: str) -> Run:
    """Return a run of a thread; raise UnknownName if it does not exist."""
    found = await runs_of(access, thread, with_empty=True)
    if id not in (known := {run.id: run for run in found}):
        raise UnknownName("run", id, [], "`runs.list` returns the runs of a thread.")
    return known[id]


async def _stream(access: Access, name: str, run: str, modes: set[str]) -> RunStream:
    thread = await access.thread(name)
    return RunStream(access=access, thread=thread, after=(await _run(access, thread, run)).after, modes=modes)


def _reply(
    stream: RunStream, chunks: AsyncIterator[str], *, end: Literal["stream", "join"], cancel: bool = False
) -> StreamingResponse:
    """Return a response that lasts as long as a run: server-sent events, or JSON after white space.

    Closing the connection stops the run with `cancel`. The headers name the run; paths are relative to the API.
    """

    def close() -> None:
        if cancel:
            stream.access.server.run_worker.cancel_nowait(stream.thread.id)

    path = f"/threads/{stream.public_id}/runs/{stream.run}"
    headers = {"Content-Location": path, "Location": f"{path}/{end}", "Cache-Control": "no-store"}
    if end == "stream":
        return StreamingResponse(with_keep_alive(chunks, on_close=close), media_type=EVENTS, headers=headers)
    body = with_keep_alive(chunks, on_close=close, filler="\n")
    return StreamingResponse(body, media_type="application/json", headers=headers)


def _as_events(stream: RunStream, *, last_event: int = 0, cancel: bool) -> StreamingResponse:
    chunks = (part.encode() async for part in stream.parts(last_event))
    return _reply(stream, chunks, end="stream", cancel=cancel)


async def _last_values(stream: RunStream) -> AsyncIterator[str]:
    """Yield the last values of a run once it has ended."""
    stream.with_deltas = False
    async for _ in stream.parts():
        pass
    values = {"__error__": stream.failure} if stream.failure else dict(stream.values)
    yield to_json({**values, **({"__interrupt__": stream.interrupts} if stream.interrupts else {})}).decode()


@router.post(f"{RunsPath}/stream")
@router.post("/runs/stream")
async def stream_run(form: AssistantRunForm, access: AccessDep, name: str | None = None) -> Response:
    """Start a run and stream it; without a thread it gets one of its own."""
    return _as_events(await start_run(access, form, name), cancel=form.on_disconnect == "cancel")


@router.post(f"{RunsPath}/wait")
@router.post("/runs/wait")
async def wait(form: AssistantRunForm, access: AccessDep, name: str | None = None) -> Response:
    """Start a run and return its last values."""
    stream = await start_run(access, form, name)
    return _reply(stream, _last_values(stream), end="join", cancel=form.on_disconnect == "cancel")


@router.post(RunsPath)
async def create(name: str, form: AssistantRunForm, access: AccessDep) -> Response:
    """Start a run in the background."""
    stream = await start_run(access, form, name)
    run = await _run(access, stream.thread, stream.run)
    path = f"/threads/{stream.public_id}/runs/{stream.run}"
    return respond(_view(access, stream.thread, run), headers={"Content-Location": path})


@router.get(RunsPath)
async def list_runs(
    name: str,
    access: AccessDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Return the runs of a thread, the latest first."""
    thread = await access.thread(name)
    found = await runs_of(access, thread)
    return respond([_view(access, thread, run) for run in found[offset : offset + limit]])


@router.get(f"{RunsPath}/{{run}}")
async def get(name: str, run: str, access: AccessDep) -> Response:
    """Return a run."""
    thread = await access.thread(name)
    return respond(_view(access, thread, await _run(access, thread, run)))


@router.get(f"{RunsPath}/{{run}}/join")
async def join(name: str, run: str, access: AccessDep) -> Response:
    """Wait for the end of a run and return its last values."""
    stream = await _stream(access, name, run, {"values"})
    return _reply(stream, _last_values(stream), end="join")


@router.get(f"{RunsPath}/{{run}}/stream")
async def join_stream(
    *,
    name: str,
    run: str,
    access: AccessDep,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: bool = False,
    last_event_id: Annotated[int, Header(ge=-1, le=2**31 - 1)] = -1,
) -> Response:
    """Stream a run after `Last-Event-ID`, by default from its beginning and in all modes."""
    modes = {mode for given in stream_mode or MODES for mode in given.split(",")}
    if unknown := modes.difference(MODES):
        raise UsageError(f"stream_mode {sorted(unknown)[0]!r} is not supported. There are: {', '.join(MODES)}.")
    stream = await _stream(access, name, run, modes)
    return _as_events(stream, last_event=max(last_event_id, 0), cancel=cancel_on_disconnect)


@router.post(f"{RunsPath}/{{run}}/cancel")
async def cancel(
    name: str, run: str, access: AccessDep, wait: bool = False, action: Literal["interrupt", "rollback"] = "interrupt"
) -> Response:
    """Stop a run; its thread keeps the finished steps."""
    if action == "rollback":
        raise UsageError("action=rollback is not supported: use interrupt, and branch from an earlier checkpoint.")
    thread = await access.thread(name)
    found = await _run(access, thread, run)
    if found.status == "running":
        await access.server.run_worker.stop(thread.id)
    return Response(status_code=204 if wait else 202)


def _view(access: Access, thread: Thread, run: Run) -> dict[str, Any]:
    """Return a run; the event log has no times, so they are those of its thread."""
    return {
        "run_id": run.id,
        "thread_id": access.public_id(thread.id),
        "assistant_id": assistant_id_of(thread.method),
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "status": run.status,
        "metadata": {},
        "kwargs": {},
        "multitask_strategy": "reject",
    }
