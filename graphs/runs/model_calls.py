"""The model calls that led to a checkpoint, each with its original prompt and reply."""

from dataclasses import asdict, dataclass
from typing import Any

from langgraph.types import StateSnapshot

from sleuth import prompts
from sleuth.agents.model_calls.caller import CallRecord
from sleuth.graphs.persistence import Thread, explain_damage
from sleuth.graphs.runs.execution import checkpoint_id_of, parent_id
from sleuth.graphs.runs.service import RunService, check_version, unknown_checkpoint


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One model call.

    `name` is that of its prompt, empty if a later release has changed the prompt. `reply` is empty if the checkpoint
    before the call was pruned.
    """

    id: str
    node: str
    role: str
    name: str
    prompt: str
    reply: str
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float
    repair: bool


@dataclass(frozen=True, kw_only=True)
class CheckpointDetails:
    """One checkpoint: the whole state, and the model calls between it and its parent."""

    checkpoint: str
    parent: str
    values: dict[str, Any]
    calls: list[ModelCall]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


async def load_checkpoint(runs: RunService, id: str, checkpoint: str) -> CheckpointDetails:
    """Return one checkpoint of a thread; raise UnknownName if it does not exist."""
    with explain_damage(id):
        return await _moment(runs, id, checkpoint)


async def _moment(runs: RunService, id: str, checkpoint: str) -> CheckpointDetails:
    thread = await runs.store.threads.get(id)
    graph = runs.graph(thread)
    state = await graph.aget_state(runs.config(thread, checkpoint))
    if not state.created_at:  # LangGraph returns an empty state for an unknown checkpoint
        known = [checkpoint_id_of(each) async for each in graph.aget_state_history(runs.config(thread))]
        raise unknown_checkpoint(checkpoint, known)
    check_version(state)
    parent = parent_id(state)
    before: StateSnapshot | None = await graph.aget_state(runs.config(thread, parent)) if parent else None
    made: dict[str, CallRecord] = state.values.get("calls", {})
    known_before = before.values.get("calls", {}) if before else {}
    new = {call: record for call, record in made.items() if call not in known_before}
    calls = await _calls(runs, new, await _replies(runs, thread, parent))
    return CheckpointDetails(checkpoint=checkpoint, parent=parent, values=state.values, calls=calls)


async def _calls(runs: RunService, new: dict[str, CallRecord], replies: dict[str, str]) -> list[ModelCall]:
    names = {version: name for name, version in (await prompts.versions()).items()}
    texts = await runs.store.archive.load(record["prompt"] for record in new.values())
    return [
        ModelCall(
            id=id,
            node=record["node"],
            role=record["role"],
            name=names.get(record["version"], ""),
            prompt=text,
            reply=replies.get(id, ""),
            model=record["model"],
            prompt_tokens=record["prompt_tokens"],
            cached_tokens=record["cached_tokens"],
            completion_tokens=record["completion_tokens"],
            seconds=record["seconds"],
            repair=record["repair"],
        )
        for (id, record), text in zip(new.items(), texts, strict=True)
    ]


async def _replies(runs: RunService, thread: Thread, checkpoint: str) -> dict[str, str]:
    """Return the replies to the calls that followed a checkpoint, by call id: results of their tasks."""
    found = await runs.store.saver.aget_tuple(runs.config(thread, checkpoint)) if checkpoint else None
    writes = (found.pending_writes or []) if found else []
    results = {id: value for id, _, value in writes if isinstance(value, dict) and value.get("call_id") == id}
    return {id: value["reply"]["text"] for id, value in results.items() if value["reply"]}
