"""Threads: sleuth's threads of the owner. A thread without a run is a chat without messages."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from sleuth.graphs.persistence import RunFilter, Thread
from sleuth.studio.server.langgraph_api.access import Access, AccessDep
from sleuth.studio.server.langgraph_api.forms import JsonRoute, ThreadForm, ThreadPatch, ThreadSearch
from sleuth.studio.server.langgraph_api.starting import create_thread
from sleuth.studio.server.langgraph_api.views import metadata_of, respond, status_of, thread_view

router = APIRouter(prefix="/threads", route_class=JsonRoute)


async def _show(access: Access, thread: Thread) -> dict[str, Any]:
    return await thread_view(access.runs, thread, access.public_id(thread.id))


@router.post("")
async def create(access: AccessDep, form: ThreadForm | None = None) -> Response:
    """Create a thread."""
    form = form or ThreadForm()
    if form.thread_id and form.if_exists == "do_nothing" and await access.find(form.thread_id):
        return respond(await _show(access, await access.thread(form.thread_id)))
    return respond(await _show(access, await create_thread(access, form.thread_id, form.metadata)))


@router.post("/search")
async def search(form: ThreadSearch, access: AccessDep) -> Response:
    """List threads, the latest first; sub-runs only if `metadata` asks for those of a run (`part_of`)."""
    found = (await _matching(form, access))[form.offset : form.offset + form.limit]
    shown = [await _show(access, thread) for thread in found]
    return respond([{key: each[key] for key in form.select or each if key in each} for each in shown])


@router.post("/count")
async def count(form: ThreadSearch, access: AccessDep) -> int:
    """Count threads."""
    return len(await _matching(form, access))


async def _matching(form: ThreadSearch, access: Access) -> list[Thread]:
    wanted = form.metadata or {}
    found = await access.runs.store.threads.list_newest(RunFilter(with_subruns="part_of" in wanted))
    kept = [
        thread
        for thread in found
        if form.ids is None or access.public_id(thread.id) in form.ids
        if form.status in (None, status_of(thread))
        if wanted.items() <= metadata_of(thread).items()
    ]
    keys = {
        "thread_id": lambda thread: thread.id,
        "status": status_of,
        "created_at": lambda thread: thread.created_at,
    }
    key = keys.get(form.sort_by or "", lambda thread: thread.updated_at)
    return sorted(kept, key=key, reverse=form.sort_order != "asc")


@router.get("/{name}")
async def get(name: str, access: AccessDep) -> Response:
    """Return a thread with its latest values."""
    return respond(await _show(access, await access.thread(name)))


@router.patch("/{name}")
async def change(name: str, form: ThreadPatch, access: AccessDep) -> Response:
    """Merge metadata into that of a thread."""
    thread = await access.thread(name)
    metadata = {**thread.options.langgraph_metadata, **form.metadata}
    await access.runs.store.threads.set_options(
        thread.id, thread.options.model_copy(update={"langgraph_metadata": metadata})
    )
    return respond(await _show(access, await access.thread(name)))


@router.delete("/{name}", status_code=204)
async def remove(name: str, access: AccessDep) -> None:
    """Delete a thread with its checkpoints and sub-runs."""
    await access.server.remove_run(access.runs, (await access.thread(name)).id)
