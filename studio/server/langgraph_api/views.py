"""States and threads in the form of LangGraph's clients."""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, PregelTask, StateSnapshot
from pydantic_core import to_json
from starlette.responses import Response

from sleuth.graphs.chat.messages import reply_id_to, run_message
from sleuth.graphs.persistence import Thread, ThreadState
from sleuth.graphs.registry import CHAT
from sleuth.graphs.runs import RunService
from sleuth.studio.server.langgraph_api.assistants import assistant_id_of

_STATUS: dict[ThreadState, str] = {
    "queued": "busy",
    "running": "busy",
    "waiting": "interrupted",
    "stopped": "interrupted",
    "interrupted": "interrupted",
    "failed": "error",
    "done": "idle",
}


def respond(value: object, *, headers: dict[str, str] | None = None) -> Response:
    """Return a value, which may contain messages, as a JSON response."""
    return Response(to_json(value), media_type="application/json", headers=headers)


def is_empty(thread: Thread) -> bool:
    """Return whether a client has created a thread, and no run has begun in it."""
    return thread.method == CHAT.name and not thread.question


def status_of(thread: Thread) -> str:
    """Return the status of a thread."""
    return "idle" if is_empty(thread) else _STATUS[thread.state]


def metadata_of(thread: Thread) -> dict[str, Any]:
    """Return the metadata of a thread: that of its client, and its graph once it has one."""
    given = thread.options.langgraph_metadata
    if is_empty(thread):
        return given
    sub_run = {"part_of": thread.part_of, "hop": thread.hop} if thread.part_of else {}
    return {**given, **sub_run, "graph_id": thread.method, "assistant_id": assistant_id_of(thread.method)}


def values_of(state: StateSnapshot, thread: Thread) -> dict[str, Any]:
    """Return the values of a state; those of a method have its question and its answer as messages, too."""
    values: dict[str, Any] = state.values
    if not values.get("question") or thread.method == CHAT.name:
        return values
    messages: list[AnyMessage] = [HumanMessage(values["question"], id=f"question of {thread.id}")]
    if verdict := values.get("verdict"):
        about = {"status": verdict["status"], "citations": verdict["citations"]}
        messages.append(run_message(values, about, id=reply_id_to(messages[0].id)))
    return {**values, "messages": messages}


async def thread_view(runs: RunService, thread: Thread, public_id: str) -> dict[str, Any]:
    """Return a thread with the values of its latest state."""
    state = await runs.state(thread)
    waiting = {task.id: interrupts_view(task.interrupts) for task in state.tasks if task.interrupts}
    return {
        "thread_id": public_id,
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "state_updated_at": state.created_at or thread.created_at,
        "metadata": metadata_of(thread),
        "status": status_of(thread),
        "config": {},
        "values": values_of(state, thread) or None,
        "interrupts": waiting,
    }


def state_view(state: StateSnapshot, thread: Thread, public_id: str) -> dict[str, Any]:
    """Return a state of a thread."""
    return {
        "values": values_of(state, thread),
        "next": list(state.next),
        "tasks": [_task_view(task) for task in state.tasks],
        "metadata": {**(state.metadata or {}), "thread_id": public_id},
        "created_at": state.created_at,
        "checkpoint": _checkpoint_view(state.config, public_id),
        "parent_checkpoint": _checkpoint_view(state.parent_config, public_id),
        "interrupts": interrupts_view(state.interrupts),
    }


def interrupts_view(interrupts: Iterable[Interrupt]) -> list[dict[str, Any]]:
    """Return interrupts that wait for a reply."""
    return [{"id": each.id, "value": each.value} for each in interrupts]


def _task_view(task: PregelTask) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "path": task.path,
        "error": str(task.error) if task.error else None,
        "interrupts": interrupts_view(task.interrupts),
        "checkpoint": None,
        "state": None,
        "result": task.result,
    }


def _checkpoint_view(config: RunnableConfig | None, public_id: str) -> dict[str, Any] | None:
    id = (config or {}).get("configurable", {}).get("checkpoint_id")
    return {"thread_id": public_id, "checkpoint_ns": "", "checkpoint_id": id} if id else None
