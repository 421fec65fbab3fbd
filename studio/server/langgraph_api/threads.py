"""Threads and their states: sleuth's threads of the owner. A thread without a run is a chat without messages."""

from typing import Any, get_args
from uuid import uuid4

from fastapi import APIRouter
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from pydantic_core import to_json
from starlette.responses import Response

from sleuth.graphs.core.method import CHAT
from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.persistence.thread import Outcome, StoredOptions, Thread, ThreadState, Turn
from sleuth.graphs.runs.execution import now
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of, find_graph
from sleuth.studio.server.langgraph_api.forms import (
    HistoryForm,
    JsonRoute,
    PlaceForm,
    ThreadForm,
    ThreadPatch,
    ThreadSearch,
)
from sleuth.studio.server.langgraph_api.streams import interrupts_view, values_of
from sleuth.studio.server.state import Access, AccessDep, ThreadDep
from sleuth.tools.errors import RunError, UnknownName

router = APIRouter(prefix="/threads", route_class=JsonRoute)

_STATUS: dict[ThreadState | Outcome, str] = {
    "queued": "busy",
    "running": "busy",
    "waiting": "interrupted",
    "stopped": "interrupted",
    "interrupted": "interrupted",
    "failed": "error",
    "done": "idle",
}
"""The status of a thread in a state or with an outcome; `idle` for all other outcomes."""


def respond(value: object) -> Response:
    """Return a value, which may contain messages, as a JSON response."""
    return Response(to_json(value), media_type="application/json")


def _metadata_of(thread: Thread) -> dict[str, Any]:
    """Return the metadata of a thread: that of its client, and its graph once it has one."""
    if thread.is_empty:
        return thread.client_metadata
    part_of = {"part_of": thread.part_of} if thread.part_of else {}
    about = {"graph_id": thread.method, "assistant_id": assistant_id_of(thread.method)}
    return {**thread.client_metadata, **part_of, **about}


async def _thread_view(access: Access, thread: Thread) -> dict[str, Any]:
    """Return a thread with the values of its latest state."""
    state, values = await _state_of(access, thread)
    return {
        "thread_id": access.public_id(thread.id),
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "state_updated_at": state.created_at or thread.created_at,
        "metadata": _metadata_of(thread),
        "status": _STATUS[thread.state],
        "config": {},
        "values": values or None,
        "interrupts": {task.id: interrupts_view(task.interrupts) for task in state.tasks if task.interrupts},
    }


async def _state_of(
    access: Access, thread: Thread, checkpoint: str | None = None
) -> tuple[StateSnapshot, dict[str, Any]]:
    """Return a state of a thread and its values; the latest of a chat has the messages that it waits to answer, too."""
    state = await access.runs.state(thread, checkpoint)
    values = values_of(state, thread)
    if thread.method == CHAT and not checkpoint and not thread.is_empty:
        values = {**values, "messages": await access.messages(thread, state)}
    return state, values


def _state_view(state: StateSnapshot, thread: Thread, public_id: str, values: dict[str, Any]) -> dict[str, Any]:
    def place(config: RunnableConfig | None) -> dict[str, Any] | None:
        id = (config or {}).get("configurable", {}).get("checkpoint_id")
        return {"thread_id": public_id, "checkpoint_ns": "", "checkpoint_id": id} if id else None

    tasks = [
        {
            "id": task.id,
            "name": task.name,
            "path": task.path,
            "error": str(task.error) if task.error else None,
            "interrupts": interrupts_view(task.interrupts),
            "checkpoint": None,
            "state": None,
            "result": task.result,
        }
        for task in state.tasks
    ]
    return {
        "values": values,
        "next": list(state.next),
        "tasks": tasks,
        "metadata": {**(state.metadata or {}), "thread_id": public_id},
        "created_at": state.created_at,
        "checkpoint": place(state.config),
        "parent_checkpoint": place(state.parent_config),
        "interrupts": interrupts_view(state.interrupts),
    }


@router.post("")
async def create(access: AccessDep, form: ThreadForm | None = None) -> Response:
    """Store a thread without a run; the first run replaces its row.

    Raises:
        RunError: the thread exists already.
    """
    form, created = form or ThreadForm(), now()
    name = form.thread_id
    thread = Thread(
        id=access.scoped_id(name) if name else str(uuid4()),
        owner=access.owner,
        method=CHAT,
        question="",
        options=StoredOptions(profile=access.server.settings.profile, turn=Turn(text="", at="-")),  # nothing to send
        state="done",
        client_metadata=form.metadata,
        created_at=created,
        updated_at=created,
    )
    stored = await access.find(name) if name else None
    if stored is None:
        try:
            await access.runs.store.threads.add(thread)
            return respond(await _thread_view(access, thread))
        except RunError:  # another request was faster, or another owner has the id
            stored = await access.find(str(name))
    if stored is None or form.if_exists != "do_nothing":
        raise RunError(f"Thread {name} exists already: choose another id, or pass if_exists=do_nothing.")
    return respond(await _thread_view(access, stored))


def _filter_of(form: ThreadSearch) -> RunFilter | None:
    """Return the filter of a search; None if it matches no thread."""
    metadata = dict(form.metadata or {})
    assistants = [metadata.pop(name) for name in ("graph_id", "assistant_id") if name in metadata]
    part_of = metadata.pop("part_of", "")
    try:
        methods = {find_graph(str(assistant)).name for assistant in assistants}
    except UnknownName:
        return None
    if len(methods) > 1 or not isinstance(part_of, str):
        return None
    return RunFilter(
        outcomes=tuple(outcome for outcome in get_args(Outcome) if form.status in (None, _STATUS.get(outcome, "idle"))),
        methods=tuple(methods),
        part_of=part_of,
        with_subruns=bool(part_of),
        metadata=metadata,
        offset=form.offset,
    )


@router.post("/search")
async def search(form: ThreadSearch, access: AccessDep) -> Response:
    """List threads, the latest first; sub-runs only if `metadata` asks for those of a run (`part_of`)."""
    run_filter = _filter_of(form)
    threads = await access.runs.store.threads.list_newest(run_filter, form.limit) if run_filter else []
    if run_filter and run_filter.methods:  # a thread without a run has no graph yet
        threads = [thread for thread in threads if not thread.is_empty]
    return respond([await _thread_view(access, thread) for thread in threads])


@router.get("/{thread}")
async def get(thread: ThreadDep, access: AccessDep) -> Response:
    """Return a thread with its latest values."""
    return respond(await _thread_view(access, thread))


@router.patch("/{thread}")
async def change(thread: ThreadDep, form: ThreadPatch, access: AccessDep) -> Response:
    """Merge metadata into that of a thread."""
    await access.runs.store.threads.merge_metadata(thread.id, form.metadata)
    return await get(await access.runs.store.threads.get(thread.id), access)


@router.delete("/{thread}", status_code=204)
async def remove(thread: ThreadDep, access: AccessDep) -> None:
    """Delete a thread with its checkpoints and sub-runs."""
    await access.remove(thread.id)


@router.get("/{thread}/state")
@router.get("/{thread}/state/{checkpoint}")
async def get_state(thread: ThreadDep, access: AccessDep, checkpoint: str | None = None) -> Response:
    """Return the state of a checkpoint, by default the latest."""
    state, values = await _state_of(access, thread, checkpoint)
    return respond(_state_view(state, thread, access.public_id(thread.id), values))


@router.post("/{thread}/state/checkpoint")
async def get_state_of(thread: ThreadDep, form: PlaceForm, access: AccessDep) -> Response:
    """Return the state of a checkpoint."""
    return await get_state(thread, access, form.place)


@router.post("/{thread}/history")
async def search_history(thread: ThreadDep, form: HistoryForm, access: AccessDep) -> Response:
    """Return the states of a thread with all its branches, the latest first."""
    graph, public = access.runs.graph(thread), access.public_id(thread.id)
    config = access.runs.config(thread, form.checkpoint.checkpoint_id if form.checkpoint else None)
    end = access.runs.config(thread, form.end) if form.end else None
    states = graph.aget_state_history(config, limit=form.limit, before=end, filter=form.metadata)
    return respond([_state_view(state, thread, public, values_of(state, thread)) async for state in states])
