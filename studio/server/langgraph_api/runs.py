"""Runs: start, stream, wait, join, list and cancel them. Runs continue without a client unless it asks otherwise."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from sleuth.graphs.persistence import Thread
from sleuth.studio.server.langgraph_api.access import Access, AccessDep
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of
from sleuth.studio.server.langgraph_api.forms import MODES, AssistantRunForm, JsonRoute
from sleuth.studio.server.langgraph_api.run_ids import Run, RunStatus, first_event, read_run, run_id_of, split_runs
from sleuth.studio.server.langgraph_api.starting import start_run
from sleuth.studio.server.langgraph_api.streaming import RunStream
from sleuth.studio.server.langgraph_api.views import respond
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.tools.errors import UnknownName, UsageError

router = APIRouter(route_class=JsonRoute)

RunsPath = "/threads/{name}/runs"


async def _started(access: Access, form: AssistantRunForm, name: str | None) -> RunStream:
    started = await start_run(access, form, name)
    thread = await access.runs.store.threads.get(started.thread)
    return RunStream(access=access, thread=thread, after=started.after, modes=form.modes)


async def _found(access: Access, name: str, run: str, modes: set[str]) -> RunStream:
    thread = await access.thread(name)
    return RunStream(access=access, thread=thread, after=(await _run(access, thread, run)).after, modes=modes)


async def _run(access: Access, thread: Thread, id: str) -> Run:
    """Return a run of a thread; raise UnknownName if it does not exist."""
    after = first_event(thread.id, id)
    stored = await access.server.log.after(thread.id, 0)
    if after > (stored[-1].id if stored else 0):
        raise UnknownName("run", id, [], "`runs.list` returns the runs of a thread.")
    return read_run(thread, stored, after, is_active=await access.server.run_worker.is_running(thread.id))


def _headers(stream: RunStream, end: Literal["stream", "join"]) -> dict[str, str]:
    """Return the headers with which a client finds the run again; paths are relative to the API."""
    path = f"/threads/{stream.access.public_id(stream.thread.id)}/runs/{stream.run}"
    return {"Content-Location": path, "Location": f"{path}/{end}", "Cache-Control": "no-store"}


def _as_events(stream: RunStream, *, last_event: int = 0, cancel: bool) -> StreamingResponse:
    """Return the stream as server-sent events; with `cancel` closing the connection stops the run."""
    chunks = with_keep_alive(
        (part.encode() async for part in stream.parts(last_event)), on_close=lambda: _close(stream, cancel=cancel)
    )
    return StreamingResponse(chunks, media_type="text/event-stream", headers=_headers(stream, "stream"))


def _as_json(stream: RunStream, *, cancel: bool = False) -> StreamingResponse:
    """Return the last values of a run once it has ended, after white space that keeps the connection open."""
    stream.with_deltas = False
    body = with_keep_alive(_last_values(stream), on_close=lambda: _close(stream, cancel=cancel), filler="\n")
    return StreamingResponse(body, media_type="application/json", headers=_headers(stream, "join"))


async def _last_values(stream: RunStream) -> AsyncIterator[str]:
    async for _ in stream.parts():
        pass
    values = {"__error__": stream.failure} if stream.failure else dict(stream.values)
    yield to_json({**values, **({"__interrupt__": stream.interrupts} if stream.interrupts else {})}).decode()


def _close(stream: RunStream, *, cancel: bool) -> None:
    if cancel:
        stream.access.server.run_worker.cancel_nowait(stream.thread.id)


@router.post(f"{RunsPath}/stream")
@router.post("/runs/stream")
async def stream_run(form: AssistantRunForm, access: AccessDep, name: str | None = None) -> Response:
    """Start a run and stream it; without a thread it gets one of its own."""
    return _as_events(await _started(access, form, name), cancel=form.on_disconnect == "cancel")


@router.post(f"{RunsPath}/wait")
@router.post("/runs/wait")
async def wait(form: AssistantRunForm, access: AccessDep, name: str | None = None) -> Response:
    """Start a run and return its last values."""
    return _as_json(await _started(access, form, name), cancel=form.on_disconnect == "cancel")


@router.post(RunsPath)
@router.post("/runs")
async def create(form: AssistantRunForm, access: AccessDep, name: str | None = None) -> Response:
    """Start a run in the background."""
    stream = await _started(access, form, name)
    run = await _run(access, stream.thread, stream.run)
    headers = {"Content-Location": _headers(stream, "join")["Content-Location"]}
    return respond(_view(access, stream.thread, run), headers=headers)


@router.get(RunsPath)
async def list_runs(
    name: str,
    access: AccessDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0)] = 0,
    status: RunStatus | None = None,
) -> Response:
    """Return the runs of a thread, the latest first."""
    thread = await access.thread(name)
    active = await access.server.run_worker.is_running(thread.id)
    found = split_runs(thread, await access.server.log.after(thread.id, 0), is_active=active)
    kept = [_view(access, thread, run) for run in found if status in (None, run.status)]
    return respond(kept[offset : offset + limit])


@router.get(f"{RunsPath}/{{run}}")
async def get(name: str, run: str, access: AccessDep) -> Response:
    """Return a run."""
    thread = await access.thread(name)
    return respond(_view(access, thread, await _run(access, thread, run)))


@router.get(f"{RunsPath}/{{run}}/join")
async def join(name: str, run: str, access: AccessDep) -> Response:
    """Wait for the end of a run and return its last values."""
    return _as_json(await _found(access, name, run, {"values"}))


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
    stream = await _found(access, name, run, modes)
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
    return Response(status_code=204) if wait else Response(status_code=202)


def _view(access: Access, thread: Thread, run: Run) -> dict[str, Any]:
    """Return a run; the event log has no times, so they are those of its thread."""
    return {
        "run_id": run_id_of(thread.id, run.after),
        "thread_id": access.public_id(thread.id),
        "assistant_id": assistant_id_of(thread.method),
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "status": run.status,
        "metadata": {},
        "kwargs": {},
        "multitask_strategy": "reject",
    }
