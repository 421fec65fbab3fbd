"""The runs API: `sleuth ask`, `resume` and `runs` over HTTP, with runs in the background."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Body, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from sleuth.graphs.core import seconds_at, total_cost
from sleuth.graphs.evidence.retrieval import mark_changed
from sleuth.graphs.persistence import Outcome, RunFilter, explain_damage
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs import RunService, check_question, export_run, fork_run
from sleuth.graphs.runs import model_calls as calls
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.studio.console.survey_table import FORMATS
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.runs import FollowUp
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.schemas.errors import STREAM_ERRORS
from sleuth.studio.server.state import ServerState, ServerStateDep
from sleuth.tools.errors import RunError, StoreError, UnknownName, UsageError

router = APIRouter(prefix="/v1/runs", tags=["runs"])


async def _read_only_runs(server: ServerStateDep, owner: Owner) -> RunService:
    return await server.tenants.read_only_runs(owner)


async def _thread(thread: str, runs: "RunsDep", server: ServerStateDep, owner: Owner) -> str:
    """Return the id of the owner's thread; raise UnknownName for threads of others."""
    return (await runs.store.threads.get(await find_id(thread, runs, server, owner) or thread)).id


async def find_id(name: str, runs: RunService, server: ServerState, owner: str) -> str | None:
    """Return the id of the owner's run of this name, if there is one.

    Ids are unique among all owners. On a server with keys, a new run with a chosen name gets the id `owner:name`, so
    that nobody learns which names others have chosen.
    """
    for id in (name, scoped_id(name, server, owner)):
        if await runs.store.threads.find(id):
            return id
    return None


async def id_for(name: str, runs: RunService, server: ServerState, owner: str) -> str:
    """Return the id of the owner's run of this name; if there is none, that of a new one."""
    return await find_id(name, runs, server, owner) or scoped_id(name, server, owner)


def scoped_id(name: str, server: ServerState, owner: str) -> str:
    """Return the id of a new run with a chosen name."""
    return f"{owner}:{name}" if server.settings.has_keys else name


RunsDep = Annotated[RunService, Depends(_read_only_runs)]
ThreadDep = Annotated[str, Depends(_thread)]


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
        if owner not in (known := await server.tenants.store.threads.owners()):
            raise UnknownName("owner", owner, known)
    return await server.tenants.read_only_runs(owner or caller)


@router.get("")
async def list_runs(
    *,
    runs: Annotated[RunService, Depends(_listed_runs)],
    server: ServerStateDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    find: Annotated[
        str, Query(max_length=200, description="list runs whose question or answer has these beginnings of words")
    ] = "",
    status: Annotated[list[Outcome], Query(max_length=20, description="list runs of these outcomes")] = [],  # noqa: B006 - FastAPI copies it
    method: Annotated[list[MethodQuery], Query(max_length=20, description="list runs of these methods")] = [],  # noqa: B006
    since: Time = "",
    until: Time = "",
    before: Time = "",
    before_id: Annotated[
        str, Query(max_length=100, pattern=r"^[\w.@:-]*$", description="with `before`: the last run of the page before")
    ] = "",
    subruns: Annotated[bool, Query(description="also list sub-runs")] = True,
) -> list[forms.ListedRun]:
    """List runs, the latest first.

    `since`, `until` and `before` compare the time of the last change. For the next page, send the `updated_at` and `id`
    of the last run as `before` and `before_id`.
    """
    wanted = RunFilter(
        find=find,
        outcomes=tuple(status),
        methods=tuple(method),
        since=since,
        until=until,
        before=before,
        before_id=before_id,
        with_subruns=subruns,
    )
    found = await runs.with_results(await runs.store.threads.search(wanted, limit))
    follow_ups = await server.conversations.find([thread.id for thread in found])
    rows = [forms.ListedRun(**thread.to_json()) for thread in found]
    for row in rows:
        if follow_up := follow_ups.get(row.id):
            row.conversation, row.asked = follow_up.conversation, follow_up.asked
    return rows


@router.post("", status_code=201)
async def start(form: forms.RunForm, server: ServerStateDep, owner: Owner, runs: RunsDep) -> forms.Begun:
    """Start a background run.

    With `after`, the question is first rewritten into one that is self-contained. With the thread of a chat (method
    `chat`), it is the next message of the chat.
    """
    await server.require_ready(owner, form.where)
    id = await id_for(form.thread, runs, server, owner) if form.thread else uuid4().hex[:12]
    question = form.question if form.after is None else await _follow_up(form, id, server, owner)
    thread = await server.start_run(
        owner,
        question,
        form.method,
        values=form.values,
        budget=form.budget.budget(),
        where=form.where,
        thread=id,
        expect_listener=True,
    )
    return forms.Begun(thread=thread)


async def _follow_up(form: forms.RunForm, id: str, server: ServerState, owner: str) -> str:
    """Return the rewritten question and store the follow-up."""
    assert form.after
    message, runs = check_question(form.question), await server.tenants.read_only_runs(owner)
    after = await find_id(form.after, runs, server, owner) or form.after
    configure(runnable(form.method), form.values, server.settings.profile)
    if await runs.store.threads.exists(id):
        raise UsageError(f"Thread {id} exists already. A follow-up needs a new thread.")
    turns = await server.conversations.turns_until(runs, after)
    made = await server.rewrite_follow_up(owner, message, turns)
    before = await server.conversations.get(after)
    follow_up = FollowUp(
        thread=id,
        after=after,
        conversation=before.conversation if before else after,
        asked=message,
        cost=total_cost(made.calls),
        warnings=made.warnings,
    )
    await server.conversations.add(follow_up)
    return made.question


@router.get("/{thread}")
async def show(thread: ThreadDep, runs: RunsDep, server: ServerStateDep, owner: Owner) -> forms.RunView:
    """Return the current state of a run."""
    row = await runs.store.threads.get(thread)
    with explain_damage(thread):
        snapshot = await runs.graph(row).aget_state(runs.config(row))
    state, seconds = snapshot.values, seconds_at(snapshot)
    if row.state == "running" and seconds is not None:  # up to this moment, without the pause before a resume
        began = max(filter(None, (snapshot.created_at, row.updated_at)), key=datetime.fromisoformat)
        seconds += max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
    follow_up = await server.conversations.get(thread)
    return forms.RunView(
        thread=forms.ThreadRow(**row.to_json()),
        answer=await _answer(runs, thread, server, owner),
        state=state,
        cost=total_cost(state.get("calls", {})),
        seconds=seconds,
        follow_up=forms.FollowUpView(**asdict(follow_up)) if follow_up else None,
    )


async def _answer(runs: RunService, thread: str, server: ServerState, owner: str) -> dict[str, Any] | None:
    try:
        answer = await runs.answer(thread)
    except RunError:  # it has no answer yet
        return None
    with suppress(StoreError):  # an answer is shown without its documents too
        await mark_changed(answer.citations, await server.tenants.collection(owner))
    return answer.to_json()


@router.get("/{thread}/conversation")
async def show_conversation(
    thread: ThreadDep, runs: RunsDep, server: ServerStateDep, owner: Owner
) -> list[forms.TurnView]:
    """Return all runs of a run's conversation, the oldest first."""
    own = await server.conversations.get(thread)
    first = own.conversation if own else thread
    follow_ups = {each.thread: each for each in await server.conversations.of(first)}
    found = [await runs.store.threads.find(id) for id in (first, *follow_ups)]
    rows = sorted((row for row in found if row), key=lambda row: row.created_at)
    return [
        forms.TurnView(
            thread=forms.ThreadRow(**row.to_json()),
            after=follow_ups[row.id].after if row.id in follow_ups else "",
            asked=follow_ups[row.id].asked if row.id in follow_ups else row.question,
            answer=await _answer(runs, row.id, server, owner),
        )
        for row in rows
    ]


@router.delete("/{thread}", status_code=204)
async def remove(thread: ThreadDep, runs: RunsDep, server: ServerStateDep) -> None:
    """Delete a run with its checkpoints and sub-runs."""
    await server.remove_run(runs, thread)


@router.get("/{thread}/events", response_class=EventSourceResponse, responses=STREAM_ERRORS)
async def events(
    thread: ThreadDep, server: ServerStateDep, last_event_id: Annotated[int, Header(ge=0, le=2**31 - 1)] = 0
) -> AsyncIterator[ServerSentEvent]:
    """Stream the events of a run after `Last-Event-ID`, to its end: `answer`, `error` or `stopped`.

    Each `step` is sent once, also if the server was killed and restarted. A run that is resumed after its end publishes
    further events; the stream ends with the last one.

    Between them come `delta` events, which have no id and are not stored: further `text` of the reply to a `call` that
    a `role` is making in a `node`. A `reset` withdraws all text of its `call`, which is repeated or has failed. The
    finished step contains the result. A client that connects during a call first gets its text so far.
    """
    active = partial(server.run_worker.is_active, thread)
    async for event in server.log.follow(thread, last_event_id, is_active=active, with_deltas=True):
        yield ServerSentEvent(event=event.name, id=str(event.id) if event.id else None, raw_data=event.data)


@router.post("/{thread}/stop", status_code=202)
async def stop(thread: ThreadDep, server: ServerStateDep) -> forms.Stopped:
    """Stop a run; `resume` continues from its last step."""
    await server.run_worker.stop(thread)
    return forms.Stopped(thread=thread)


@router.post("/{thread}/resume", status_code=202)
async def resume(
    thread: ThreadDep,
    runs: RunsDep,
    server: ServerStateDep,
    owner: Owner,
    form: Annotated[forms.ResumeForm | None, Body()] = None,
) -> forms.Begun:
    """Resume a run in the background from its last checkpoint."""
    server.run_worker.require_open()
    await server.quota.require(owner)
    if form and form.update:
        await runs.update(thread)
    budget = form.budget.budget() if form and form.budget else None
    await server.run_worker.start(owner, thread, budget=budget)
    return forms.Begun(thread=thread)


@router.get("/{thread}/history")
async def show_history(thread: ThreadDep, runs: RunsDep) -> list[forms.MomentRow]:
    """Return all checkpoints of a run with all its branches, the newest first."""
    return [forms.MomentRow(**moment.to_json()) for moment in await list_checkpoints(runs, thread)]


@router.get("/{thread}/checkpoints/{checkpoint}")
async def show_checkpoint(thread: ThreadDep, checkpoint: str, runs: RunsDep) -> forms.MomentView:
    """Return a checkpoint with its whole state and the model calls that led to it."""
    return forms.MomentView(**(await calls.load_checkpoint(runs, thread, checkpoint)).to_json())


@router.post("/{thread}/fork", status_code=201)
async def make_fork(
    thread: ThreadDep, form: forms.ForkForm, runs: RunsDep, server: ServerStateDep, owner: Owner
) -> forms.Forked:
    """Branch a run from a checkpoint; `resume` runs the branch."""
    await server.run_worker.require_idle(thread)
    name = await id_for(form.name, runs, server, owner) if form.name else None
    made = await fork_run(runs, thread, at=form.at, changes=form.state, into=form.method, name=name)
    return forms.Forked(**made)


@router.put("/{thread}/feedback", status_code=204)
async def set_feedback(thread: ThreadDep, form: forms.FeedbackForm, runs: RunsDep) -> None:
    """Store what a person thinks of the answer with the run, in its options."""
    row = await runs.store.threads.get(thread)
    await runs.store.threads.set_options(thread, row.options.model_copy(update={"feedback": form.model_dump()}))


@router.get("/{thread}/table", response_class=Response)
async def show_table(
    thread: ThreadDep, runs: RunsDep, format: Annotated[Literal["csv", "xlsx", "md", "json"], Query()] = "csv"
) -> Response:
    """Return the table of a finished survey as a file: every document that was asked, with a quote for each cell."""
    table = (await runs.answer(thread)).table
    if table is None:
        raise UsageError(f"Run {thread} has no table: only a survey has one.")
    media_type, write = FORMATS[format]
    headers = {"Content-Disposition": f'attachment; filename="survey-{thread}.{format}"'}
    return Response(await asyncio.to_thread(write, table), media_type=media_type, headers=headers)


@router.get("/{thread}/export")
async def show_export(thread: ThreadDep, runs: RunsDep) -> dict[str, Any]:
    """Return a run as one JSON value: history, state, prompts and passages."""
    return await export_run(runs, thread)
