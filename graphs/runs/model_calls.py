"""The model calls that led to a checkpoint, each with its original prompt and reply."""

from dataclasses import asdict, dataclass
from typing import Any

from sleuth import prompts
from sleuth.agents.model_calls import CallRecord
from sleuth.graphs.persistence import Thread
from sleuth.graphs.runs.execution import parent_id
from sleuth.graphs.runs.service import RunService


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
    thread = await runs.store.threads.get(id)
    state = await runs.state(thread, checkpoint)
    parent = parent_id(state)
    before = await runs.graph(thread).aget_state(runs.config(thread, parent)) if parent else None  # pruned: no values
    known_before = before.values.get("calls", {}) if before else {}
    made: dict[str, CallRecord] = state.values.get("calls", {})
    new = {call: record for call, record in made.items() if call not in known_before}
    calls = await _calls(runs, new, await _replies(runs, thread, parent))
    return CheckpointDetails(checkpoint=checkpoint, parent=parent, values=state.values, calls=calls)


async def _calls(runs: RunService, new: dict[str, CallRecord], replies: dict[str, str]) -> list[ModelCall]:
    names = {version: name for name, version in (await prompts.versions()).items()}
    texts = await runs.store.archive.load(record["prompt"] for record in new.values())
    calls = []
    for (id, record), text in zip(new.items(), texts, strict=True):
        name, reply = names.get(record["version"], ""), replies.get(id, "")
        fields: dict[str, Any] = {**record, "id": id, "name": name, "prompt": text, "reply": reply}
        calls.append(ModelCall(**{field: fields[field] for field in ModelCall.__dataclass_fields__}))
    return calls


async def _replies(runs: RunService, thread: Thread, checkpoint: str) -> dict[str, str]:
    """Return the replies to the calls that followed a checkpoint, by call id: results of their tasks."""
    found = await runs.store.saver.aget_tuple(runs.config(thread, checkpoint)) if checkpoint else None
    writes = (found.pending_writes or []) if found else []
    results = {id: value for id, _, value in writes if isinstance(value, dict) and value.get("call_id") == id}
    return {id: value["reply"]["text"] for id, value in results.items() if value["reply"]}
