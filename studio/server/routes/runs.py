"""The runs API: what `sleuth ask`, `resume` and `runs` do, in the background."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Body, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from sleuth.graphs.core import seconds_at, total_cost
from sleuth.graphs.persistence import explain_damage
from sleuth.graphs.registry import configure, runnable
from sleuth.graphs.runs import RunService, check_question, export_run, fork_run
from sleuth.graphs.runs import model_calls as calls
from sleuth.graphs.runs import pruning as prune
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.runs import FollowUp
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.schemas.errors import STREAM_ERRORS
from sleuth.studio.server.state import House, TheHouse
from sleuth.tools.errors import RunError, UsageError

router = APIRouter(prefix="/v1/runs", tags=["runs"])


async def _reading(house: TheHouse, owner: Owner) -> RunService:
    return await house.tenants.reading(owner)


async def _known(thread: str, runs: "Reading", house: TheHouse, owner: Owner) -> str:
    """The thread, if it is the owner's."""
    return (await runs.store.threads.get(await _named(thread, runs, house, owner) or thread)).id


async def _named(name: str, runs: RunService, house: House, owner: str) -> str | None:
    """The id of the owner's run of this name; None where there is none.

    Ids are unique among all owners. On a server with keys a new run of a chosen name gets the id `owner:name`, so that
    nobody learns which names others have chosen.
    """
    for id in (name, _scoped(name, house, owner)):
        if await runs.store.threads.find(id):
            return id
    return None


def _scoped(name: str, house: House, owner: str) -> str:
    return name if house.settings.api_keys is None else f"{owner}:{name}"


Reading = Annotated[RunService, Depends(_reading)]
Known = Annotated[str, Depends(_known)]


@router.get("")
async def list_runs(
    runs: Reading,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    before: Annotated[str | None, Query(max_length=40, description="ISO 8601: those last touched before it")] = None,
) -> list[forms.ThreadRow]:
    """Runs, the latest first."""
    found = await runs.store.threads.list_newest(limit=limit, before=before)
    return [forms.ThreadRow(**thread.to_json()) for thread in found]


@router.post("", status_code=201)
async def start(asked: forms.RunForm, house: TheHouse, owner: Owner, runs: Reading) -> forms.Begun:
    """Starts a run, which goes on in the background whoever watches it.

    With `after` the question is first made one that can be understood without the conversation before it. The thread of
    a chat (method `chat`) takes the next message.
    """
    library = await house.tenants.library(owner)
    await library.require_documents()
    await house.quota.require(owner)
    id = uuid4().hex[:12]
    if asked.thread:
        id = await _named(asked.thread, runs, house, owner) or _scoped(asked.thread, house, owner)
    question = asked.question if asked.after is None else await _follow_up(asked, id, house, owner)
    thread = await runs.start(
        question,
        asked.method,
        values=asked.values,
        profile=house.settings.profile,
        budget=asked.budget.budget(),
        thread=id,
    )
    await house.jobs.begin(owner, thread)
    return forms.Begun(thread=thread)


async def _follow_up(asked: forms.RunForm, id: str, house: House, owner: str) -> str:
    """The question as it is understood; where that is from is written down."""
    assert asked.after
    message, runs = check_question(asked.question), await house.tenants.reading(owner)
    after = await _named(asked.after, runs, house, owner) or asked.after
    configure(runnable(asked.method), asked.values, house.settings.profile)
    if await runs.store.threads.exists(id):
        raise UsageError(f"Thread {id} was used already: a follow-up is a run of its own.")
    turns = await house.conversations.before(runs, after)
    made = await house.understood(owner, message, turns)
    before = await house.conversations.get(after)
    follow_up = FollowUp(
        thread=id,
        after=after,
        conversation=before.conversation if before else after,
        asked=message,
        cost=total_cost(made.calls),
        warnings=made.warnings,
    )
    await house.conversations.add(follow_up)
    return made.question


@router.get("/{thread}")
async def show(thread: Known, runs: Reading, house: TheHouse) -> forms.RunView:
    """A run as it stands."""
    row = await runs.store.threads.get(thread)
    with explain_damage(thread):
        snapshot = await runs.graph(row).aget_state(runs.config(row))
    state = snapshot.values
    follow_up = await house.conversations.get(thread)
    return forms.RunView(
        thread=forms.ThreadRow(**row.to_json()),
        answer=await _answer(runs, thread),
        state=state,
        cost=total_cost(state.get("calls", {})),
        seconds=seconds_at(snapshot),
        follow_up=forms.FollowUpView(**asdict(follow_up)) if follow_up else None,
    )


async def _answer(runs: RunService, thread: str) -> dict[str, Any] | None:
    try:
        return (await runs.answer(thread)).to_json()
    except RunError:  # it has none yet
        return None


@router.get("/{thread}/conversation")
async def show_conversation(thread: Known, runs: Reading, house: TheHouse) -> list[forms.TurnView]:
    """All runs of the conversation that a run belongs to, the first one first; a run by itself is one of one turn."""
    own = await house.conversations.get(thread)
    first = own.conversation if own else thread
    follow_ups = {each.thread: each for each in await house.conversations.of(first)}
    found = [await runs.store.threads.find(id) for id in (first, *follow_ups)]
    rows = sorted((row for row in found if row), key=lambda row: row.created_at)
    return [
        forms.TurnView(
            thread=forms.ThreadRow(**row.to_json()),
            after=follow_ups[row.id].after if row.id in follow_ups else "",
            asked=follow_ups[row.id].asked if row.id in follow_ups else row.question,
            answer=await _answer(runs, row.id),
        )
        for row in rows
    ]


@router.delete("/{thread}", status_code=204)
async def remove(thread: Known, runs: Reading, house: TheHouse) -> None:
    """Removes a run with its checkpoints and hops."""
    await house.jobs.require_idle(thread)
    await prune.remove_runs(runs, thread)
    await house.log.remove(thread)
    await house.conversations.remove(thread)


@router.get("/{thread}/events", response_class=EventSourceResponse, responses=STREAM_ERRORS)
async def events(
    thread: Known, house: TheHouse, last_event_id: Annotated[int, Header(ge=0, le=2**31 - 1)] = 0
) -> AsyncIterator[ServerSentEvent]:
    """A run's events from the one after `Last-Event-ID` on, to its end: `answer`, `error` or `stopped`.

    A `step` is told once, also where the server was killed and started again. A run that goes on after its end tells
    more: the stream ends with the last end.

    Between them, without an id and kept nowhere, come `delta` events: further `text` of the reply to a `call` that is
    being written at a `node` by a `role`. A `reset` takes back all that was told of its `call`, which is made again or
    has failed. The step's end has the result. Who comes in the middle of a call is told what was said of it so far.
    """
    active = partial(house.jobs.is_active, thread)
    async for event in house.log.follow(thread, last_event_id, active=active, words=True):
        yield ServerSentEvent(event=event.name, id=str(event.id) if event.id else None, raw_data=event.data)


@router.post("/{thread}/stop", status_code=202)
async def stop(thread: Known, house: TheHouse) -> forms.Stopped:
    """Ends the work in flight; `resume` goes on from the last step."""
    await house.jobs.stop(thread)
    return forms.Stopped(thread=thread)


@router.post("/{thread}/resume", status_code=202)
async def resume(
    thread: Known, house: TheHouse, owner: Owner, asked: Annotated[forms.ResumeForm | None, Body()] = None
) -> forms.Begun:
    """Goes on with a run in the background, from its last checkpoint."""
    await house.quota.require(owner)
    budget = asked.budget.budget() if asked and asked.budget else None
    await house.jobs.begin(owner, thread, budget=budget)
    return forms.Begun(thread=thread)


@router.get("/{thread}/history")
async def show_history(thread: Known, runs: Reading) -> list[forms.MomentRow]:
    """Every checkpoint of a run, the newest first, all its branches together."""
    return [forms.MomentRow(**moment.to_json()) for moment in await list_checkpoints(runs, thread)]


@router.get("/{thread}/checkpoints/{checkpoint}")
async def show_checkpoint(thread: Known, checkpoint: str, runs: Reading) -> forms.MomentView:
    """A checkpoint with its whole state, and what was said to the model on the way to it."""
    return forms.MomentView(**(await calls.load_checkpoint(runs, thread, checkpoint)).to_json())


@router.post("/{thread}/fork", status_code=201)
async def make_fork(thread: Known, asked: forms.ForkForm, runs: Reading, house: TheHouse) -> forms.Forked:
    """Branches a run from a checkpoint without running the branch: `resume` does."""
    await house.jobs.require_idle(thread)
    made = await fork_run(runs, thread, at=asked.at, changes=asked.state, into=asked.method)
    return forms.Forked(**made)


@router.get("/{thread}/export")
async def show_export(thread: Known, runs: Reading) -> dict[str, Any]:
    """A run as one JSON value: history, state, prompts and passages as they were."""
    return await export_run(runs, thread)
