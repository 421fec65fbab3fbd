"""The runs API: `sleuth ask`, `resume` and `runs` over HTTP, with runs in the background."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Body, Depends, Header, Query, Response

from sleuth.graphs.chat.sending import reply_to
from sleuth.graphs.chat.small_talk import is_command
from sleuth.graphs.core.answer import total_cost
from sleuth.graphs.core.method import CHAT, REPORT
from sleuth.graphs.evidence.retrieval import mark_changed
from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.persistence.thread import Outcome, Thread
from sleuth.graphs.runs.execution import seconds_at
from sleuth.graphs.runs.history import (
    CheckpointDetails,
    CheckpointView,
    export_run,
    fork_run,
    list_checkpoints,
    load_checkpoint,
)
from sleuth.graphs.runs.service import RunService
from sleuth.studio.console import report_file
from sleuth.studio.console.output import Formats
from sleuth.studio.console.survey_table import FORMATS
from sleuth.studio.server.middleware.auth import EMBEDDED_CHAT, IsEmbedded, Owner
from sleuth.studio.server.protocols.streaming import DESCRIPTION, EventStream, encode_event
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.schemas.checked import CheckedRoute
from sleuth.studio.server.state import Access, AccessDep, ServerStateDep, ThreadDep
from sleuth.tools.errors import RunError, StoreError, UnknownName, UsageError

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=CheckedRoute)

Time = Annotated[str, Query(max_length=40, pattern="^[0-9TZ:.+-]*$", description="ISO 8601, UTC")]
MethodQuery = Annotated[str, Query(max_length=40, pattern="^[a-z0-9-]+$")]


async def _listed_runs(
    server: ServerStateDep,
    caller: Owner,
    owner: Annotated[str, Query(max_length=100, description="list the runs of this owner; for the operator")] = "",
) -> RunService:
    if owner and owner != caller:
        if not server.is_operator(caller):
            raise UsageError("Only the operator may list the runs of other owners. SLEUTH_OPERATOR names the operator.")
        if owner not in (owners := await server.tenants.store.threads.owners()):
            raise UnknownName("owner", owner, owners)
    return server.tenants.read_only_runs(owner or caller)


@router.get("")
async def list_runs(
    *,
    runs: Annotated[RunService, Depends(_listed_runs)],
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    find: Annotated[
        str, Query(max_length=200, description="list runs whose question or answer contains these words")
    ] = "",
    status: Annotated[list[Outcome], Query(max_length=20, description="list runs of these outcomes")] = [],  # noqa: B006 - FastAPI copies it
    method: Annotated[list[MethodQuery], Query(max_length=20, description="list runs of these methods")] = [],  # noqa: B006
    weak: Annotated[bool, Query(description="list runs whose answer is supported only weakly")] = False,
    since: Time = "",
    until: Time = "",
    before: Time = "",
    before_id: Annotated[
        str, Query(max_length=100, pattern=r"^[\w.@:-]*$", description="with `before`: the last run of the page before")
    ] = "",
    subruns: Annotated[bool, Query(description="also list sub-runs")] = True,
) -> list[forms.ThreadRow]:
    """List runs, the latest first.

    `since`, `until` and `before` compare the time of the last change. For the next page, send the `updated_at` and `id`
    of the last run as `before` and `before_id`.
    """
    run_filter = RunFilter(
        find=find,
        outcomes=tuple(status),
        methods=tuple(method),
        weak=weak,
        since=since,
        until=until,
        before=before,
        before_id=before_id,
        with_subruns=subruns,
        with_empty=False,
    )
    threads = await runs.store.threads.list_newest(run_filter, limit)
    return [forms.ThreadRow(**thread.to_json()) for thread in threads]


@router.post("", status_code=201)
async def start(form: forms.RunForm, access: AccessDep, is_embedded: IsEmbedded) -> forms.Begun:
    """Start a background run.

    With `after`, it is a chat whose questions the method answers; it begins with the question and answer of that run.
    With the thread of a chat (method `chat`), the question is the next message of the chat, which waits for the turns
    before it. A greeting begins a chat, which the list of runs contains once it has a question.

    With a key for `embed.js`, the run is a chat without slash commands; other fields than `question` and `thread` are
    ignored.
    """
    if is_embedded:
        form = _embedded(form)
    request = form.request()
    if is_embedded and is_command(request.question):
        raise UsageError("This key takes questions, no commands: leave out the slash at the beginning.")
    if form.after is not None:
        after = await access.runs.answer((await access.thread(form.after)).id)
        values = {"method": form.method, "method_settings": form.values} if form.method else {}
        request = request.model_copy(update={"after": after, "method": CHAT, "values": values})
    if form.thread:
        request = request.model_copy(update={"thread": await access.id_for(form.thread)})
    await access.require_ready(form.where)
    thread = await access.start(request)
    return forms.Begun(thread=thread)


def _embedded(form: forms.RunForm) -> forms.RunForm:
    thread = form.thread or f"embed-{uuid4().hex}"
    if not EMBEDDED_CHAT.fullmatch(thread):
        raise UsageError("This key can only continue the chats that it began: leave out `thread`.")
    return forms.RunForm(question=form.question, thread=thread, method=CHAT)


@router.get("/{thread}")
async def show(thread: ThreadDep, access: AccessDep) -> forms.RunView:
    """Return the current state of a run."""
    snapshot = await access.runs.state(thread)
    state, seconds = snapshot.values, seconds_at(snapshot)
    if thread.method == CHAT:
        state = {**state, "messages": await access.messages(thread, snapshot)}
    if thread.state == "running":  # up to this moment, without the pause before a resume
        began = max(filter(None, (snapshot.created_at, thread.updated_at)), key=datetime.fromisoformat)
        seconds += max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
    return forms.RunView(
        thread=forms.ThreadRow(**thread.to_json()),
        answer=await _answer(thread, access),
        state=state,
        cost=total_cost(state.get("calls", {})),
        seconds=seconds,
    )


async def _answer(thread: Thread, access: Access) -> dict[str, Any] | None:
    try:
        answer = await access.runs.answer(thread.id)
    except RunError:  # it has no answer yet
        return None
    with suppress(StoreError):  # an answer is shown without its documents too
        await mark_changed(answer.citations, await access.server.tenants.collection(access.owner))
    return answer.to_json()


@router.delete("/{thread}", status_code=204)
async def remove(thread: ThreadDep, access: AccessDep) -> None:
    """Delete a run with its checkpoints and sub-runs."""
    await access.remove(thread.id)


@router.get("/{thread}/events", response_class=Response, responses=DESCRIPTION)
async def events(
    thread: ThreadDep, access: AccessDep, last_event_id: Annotated[int, Header(ge=0, le=2**31 - 1)] = 0
) -> EventStream:
    """Stream the events of a run after `Last-Event-ID`, to its end: `answer`, `error` or `stopped`.

    Each `step` is sent once, also if the server was killed and restarted. A run that is resumed after its end publishes
    further events; the stream ends with the last one.

    Between them come `delta` events, which have no id and are not stored: further `text` of the reply to a `call` that
    a `role` is making in a `node`. A `reset` withdraws all text of its `call`, which is repeated or has failed. The
    finished step contains the result. A client that connects during a call first gets its text so far.
    """
    events = access.follow(thread.id, last_event_id, with_deltas=True)
    return EventStream.of(encode_event(event.data, event=event.name, id=event.id) async for event in events)


@router.post("/{thread}/stop", status_code=202)
async def stop(thread: ThreadDep, server: ServerStateDep) -> forms.Begun:
    """Stop a run, or a chat with the messages that wait in it; `resume` continues from the last step."""
    await server.run_worker.stop(thread.id)
    return forms.Begun(thread=thread.id, state="stopped")


@router.post("/{thread}/resume", status_code=202)
async def resume(
    thread: ThreadDep, access: AccessDep, form: Annotated[forms.ResumeForm | None, Body()] = None
) -> forms.Begun:
    """Resume a run in the background from its last checkpoint."""
    worker, runs = access.server.run_worker, access.server.run_worker.runs(access.owner)
    worker.require_open()
    await access.server.quota.require(access.owner)
    if form and form.update:
        await runs.queue_survey_update(thread.id)
    if form and form.reply is not None:
        async with runs.hold(thread.id) as held:
            await reply_to(held, form.reply)
    budget = form.budget.budget() if form and form.budget else None
    start = worker.begin if form and (form.update or form.reply is not None) else worker.start
    await start(access.owner, thread.id, budget=budget)
    return forms.Begun(thread=thread.id)


@router.get("/{thread}/history")
async def show_history(thread: ThreadDep, access: AccessDep) -> list[CheckpointView]:
    """Return all checkpoints of a run with all its branches, the newest first."""
    return await list_checkpoints(access.runs, thread.id)


@router.get("/{thread}/checkpoints/{checkpoint}")
async def show_checkpoint(thread: ThreadDep, checkpoint: str, access: AccessDep) -> CheckpointDetails:
    """Return a checkpoint with its whole state and the model calls that led to it."""
    return await load_checkpoint(access.runs, thread.id, checkpoint)


@router.post("/{thread}/fork", status_code=201)
async def make_fork(thread: ThreadDep, form: forms.ForkForm, access: AccessDep) -> forms.Forked:
    """Branch a run from a checkpoint; `resume` runs the branch."""
    await access.server.run_worker.require_idle(thread.id)
    name = await access.id_for(form.name) if form.name else None
    branch = await fork_run(access.runs, thread.id, at=form.at, changes=form.state, into=form.method, name=name)
    return forms.Forked(**branch)


@router.put("/{thread}/feedback", status_code=204)
async def set_feedback(thread: ThreadDep, form: forms.FeedbackForm, access: AccessDep) -> None:
    """Store what a person thinks of the answer with the run."""
    await access.runs.store.threads.set_feedback(thread.id, form.model_dump())


@router.put("/{thread}/title", status_code=204)
async def set_title(thread: ThreadDep, form: forms.TitleForm, access: AccessDep) -> None:
    """Give a run a title, which lists show instead of its question."""
    await access.runs.store.threads.merge_metadata(thread.id, {"title": form.title.strip()})


def _files(formats: Formats) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {media_type.partition(";")[0]: {} for media_type, _ in formats.values()}}}


@router.get("/{thread}/table", response_class=Response, responses=_files(FORMATS))
async def show_table(
    thread: ThreadDep, access: AccessDep, format: Annotated[Literal["csv", "xlsx", "md", "json"], Query()] = "csv"
) -> Response:
    """Return the table of a finished survey as a file: every document that was asked, with a quote for each cell."""
    table = (await access.runs.answer(thread.id)).table
    if table is None:
        raise UsageError(f"Run {thread.id} has no table: only a survey has one.")
    media_type, write = FORMATS[format]
    headers = {"Content-Disposition": f'attachment; filename="survey-{thread.id}.{format}"'}
    return Response(await asyncio.to_thread(write, table), media_type=media_type, headers=headers)


@router.get("/{thread}/report", response_class=Response, responses=_files(report_file.FORMATS))
async def show_report(
    thread: ThreadDep, access: AccessDep, format: Annotated[Literal["md", "html", "docx"], Query()] = "md"
) -> Response:
    """Return a finished report as a file, with numbered sources."""
    if thread.method != REPORT:
        raise UsageError(f"Run {thread.id} is no report.")
    answer = await access.runs.answer(thread.id)
    media_type, write = report_file.FORMATS[format]
    headers = {"Content-Disposition": f'attachment; filename="report-{thread.id}.{format}"'}
    return Response(await asyncio.to_thread(write, answer), media_type=media_type, headers=headers)


@router.get("/{thread}/export")
async def show_export(thread: ThreadDep, access: AccessDep) -> dict[str, Any]:
    """Return a run as one JSON value: history, state, prompts and passages."""
    return await export_run(access.runs, thread.id)
