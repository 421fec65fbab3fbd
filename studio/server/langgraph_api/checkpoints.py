"""States of threads: the latest one, any checkpoint, the history, and changed states as branches."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from langchain_core.messages import convert_to_messages
from starlette.responses import Response

from sleuth.graphs.runs import fork_run
from sleuth.studio.server.langgraph_api.access import Access, AccessDep
from sleuth.studio.server.langgraph_api.forms import CheckpointForm, HistoryForm, JsonRoute, StateForm, StateUpdateForm
from sleuth.studio.server.langgraph_api.views import respond, state_view
from sleuth.tools.errors import UsageError

router = APIRouter(prefix="/threads/{name}", route_class=JsonRoute)


async def _show(access: Access, name: str, checkpoint: str | None = None) -> Response:
    thread = await access.thread(name)
    return respond(state_view(await access.runs.state(thread, checkpoint), thread, access.public_id(thread.id)))


@router.get("/state")
async def get_state(name: str, access: AccessDep) -> Response:
    """Return the latest state."""
    return await _show(access, name)


@router.get("/state/{checkpoint}")
async def get_state_at(name: str, checkpoint: str, access: AccessDep) -> Response:
    """Return the state of a checkpoint."""
    return await _show(access, name, checkpoint)


@router.post("/state/checkpoint")
async def get_state_of(name: str, form: StateForm, access: AccessDep) -> Response:
    """Return the state of a checkpoint."""
    return await _show(access, name, form.checkpoint.checkpoint_id)


@router.post("/state")
async def update_state(name: str, form: StateUpdateForm, access: AccessDep) -> Response:
    """Branch a thread with a changed state; the next run continues the branch."""
    thread = await access.thread(name)
    await access.server.run_worker.require_idle(thread.id)
    place = (form.checkpoint and form.checkpoint.checkpoint_id) or form.checkpoint_id
    at = place or (await access.runs.state(thread)).config["configurable"].get("checkpoint_id")
    if at is None:
        raise UsageError(f"Thread {name} has no state yet: start a run first.")
    changes = _with_messages(form.values or {})
    made = await fork_run(access.runs, thread.id, at=str(at), changes=changes, as_node=form.as_node)
    place_made = {"thread_id": name, "checkpoint_ns": "", "checkpoint_id": made["checkpoint"]}
    return respond({"checkpoint": place_made, "checkpoint_id": made["checkpoint"]})


def _with_messages(values: dict[str, Any]) -> dict[str, Any]:
    """Return changed fields with messages as objects."""
    if "messages" not in values:
        return values
    try:
        given = values["messages"]
        return {**values, "messages": convert_to_messages(given if isinstance(given, list) else [given])}
    except (ValueError, NotImplementedError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"`messages` cannot be read: {error}.") from None


@router.get("/history")
async def get_history(
    name: str, access: AccessDep, limit: Annotated[int, Query(ge=1, le=1000)] = 10, before: str | None = None
) -> Response:
    """Return the states of a thread with all its branches, the latest first."""
    return await search_history(name, HistoryForm(limit=limit, before=before), access)


@router.post("/history")
async def search_history(name: str, form: HistoryForm, access: AccessDep) -> Response:
    """Return the states of a thread with all its branches, the latest first."""
    thread = await access.thread(name)
    graph, public = access.runs.graph(thread), access.public_id(thread.id)
    config = access.runs.config(thread, form.checkpoint.checkpoint_id if form.checkpoint else None)
    before = _checkpoint_in(form.before)
    end = access.runs.config(thread, before) if before else None
    found = graph.aget_state_history(config, limit=form.limit, before=end, filter=form.metadata)
    return respond([state_view(state, thread, public) async for state in found])


def _checkpoint_in(before: str | CheckpointForm | dict[str, Any] | None) -> str | None:
    """Return the checkpoint id of `before`, which SDKs send as an id, a checkpoint or a config."""
    if isinstance(before, CheckpointForm):
        return before.checkpoint_id
    if isinstance(before, dict):
        configurable = before.get("configurable", before)
        return str(configurable["checkpoint_id"]) if configurable.get("checkpoint_id") else None
    return before
