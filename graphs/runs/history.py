"""History of runs, and branches from it: list checkpoints with their model calls, fork, export."""

import json
from collections.abc import Container, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.types import StateSnapshot, StateUpdate
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from sleuth import prompts
from sleuth.agents.model_calls.caller import CallRecord
from sleuth.graphs.core.events import Step
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.core.state import Keyed, KeysOf, Question, find_hashes, merge_keys, same_question
from sleuth.graphs.persistence.checkpoints import CheckpointSerializer
from sleuth.graphs.persistence.thread import Origin, Thread
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import (
    checkpoint_id_of,
    newest_branch,
    now,
    parent_id,
    unknown_checkpoint,
    with_paused_clock,
)
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import RunError, UnknownName, UsageError
from sleuth.tools.storage.id_prefix import complete_id


@dataclass(frozen=True, kw_only=True)
class CheckpointView:
    """One checkpoint: the nodes that led to it, those that come next, and the fields that changed.

    `source` is LangGraph's term for its origin: `input`, `loop` (nodes), `update` (a changed state) or `fork` (a copy).
    """

    checkpoint: str
    parent: str
    step: int
    node: list[str]
    next: list[str]
    at: str
    changed: dict[str, Any]
    source: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `runs history` prints."""
        return asdict(self)


class ModelCall(CallRecord):
    """One model call, with the text of its prompt.

    `name` is that of its prompt, empty if a later release has changed the prompt. `reply` is empty if the checkpoint
    before the call was pruned.
    """

    id: str
    name: str
    reply: str


@dataclass(frozen=True, kw_only=True)
class CheckpointDetails:
    """One checkpoint: the whole state, and the model calls between it and its parent."""

    checkpoint: str
    parent: str
    values: dict[str, Any]
    calls: list[ModelCall]


async def list_checkpoints(runs: RunService, id: str) -> list[CheckpointView]:
    """Return all checkpoints of a thread and of all its branches, the newest first."""
    return _views(await runs.history(await runs.store.threads.get(id)))


async def replay_steps(runs: RunService, id: str, *, known: Container[str] = ()) -> list[Step]:
    """Return the node executions up to the latest checkpoint, the first one first, as `RunService.run` yields them.

    Those of its sub-runs come first. Other branches are excluded, and what precedes tasks that are `known`.
    """
    thread = await runs.store.threads.get(id)
    subruns = await runs.store.threads.subruns_of(id)
    inner = [step for subrun in subruns for step in await replay_steps(runs, subrun.id, known=known)]
    turn = thread.options.turn.id if thread.options.turn else ""
    about: dict[str, Any] = {"thread": id, "method": thread.method, "part_of": thread.part_of, "turn": turn}
    steps: list[Step] = []
    async for state in newest_branch(runs.graph(thread), runs.config(thread)):
        ended = [
            Step(node=task.name, state="finished", update=dict(task.result), task=task.id, **about)
            for task in state.tasks
            if task.name != START and task.result is not None
        ]
        if ended and all(step.task in known for step in ended):
            break
        steps[:0] = ended
    return [replace(step, turn=turn) for step in inner] + steps


def _views(states: list[StateSnapshot]) -> list[CheckpointView]:
    by_id, views = {checkpoint_id_of(state): state for state in states}, []
    for id, state in by_id.items():
        parent = by_id.get(parent_id(state))
        before = parent.values if parent else {}
        metadata: dict[str, Any] = dict(state.metadata or {})
        view = CheckpointView(
            checkpoint=id,
            parent=parent_id(state),
            step=int(metadata.get("step", 0)),
            node=_wrote(state, by_id),
            next=list(state.next),
            at=str(state.created_at or ""),
            changed={name: value for name, value in state.values.items() if before.get(name) != value},
            source=str(metadata.get("source", "loop")),
        )
        views.append(view)
    return views


def _wrote(state: StateSnapshot, states: Mapping[str, StateSnapshot]) -> list[str]:
    """Return the nodes whose updates a checkpoint contains; a changed state counts as its parent."""
    parent, source = states.get(parent_id(state)), (state.metadata or {}).get("source")
    if parent is None or source == "input":
        return []
    if source == "update":
        return _wrote(parent, states)
    return [name for name in parent.next if name != START]


async def load_checkpoint(runs: RunService, id: str, checkpoint: str) -> CheckpointDetails:
    """Return one checkpoint of a thread; raise UnknownName if it does not exist."""
    thread = await runs.store.threads.get(id)
    state = await runs.state(thread, checkpoint)
    parent = parent_id(state)
    before = await runs.graph(thread).aget_state(runs.config(thread, parent)) if parent else None  # pruned: no values
    earlier = before.values.get("calls", {}) if before else {}
    records: dict[str, CallRecord] = state.values.get("calls", {})
    new = {id: record for id, record in records.items() if id not in earlier}
    names = {version: name for name, version in (await prompts.versions()).items()}
    texts = await runs.store.archive.load(record["prompt"] for record in new.values())
    replies = await _replies(runs, thread, parent)
    calls: list[ModelCall] = [
        {**record, "prompt": text, "id": id, "name": names.get(record["version"], ""), "reply": replies.get(id, "")}
        for (id, record), text in zip(new.items(), texts, strict=True)
    ]
    return CheckpointDetails(checkpoint=checkpoint, parent=parent, values=state.values, calls=calls)


async def _replies(runs: RunService, thread: Thread, checkpoint: str) -> dict[str, str]:
    """Return the replies to the calls that followed a checkpoint, by call id: results of their tasks."""
    saved = await runs.store.saver.aget_tuple(runs.config(thread, checkpoint)) if checkpoint else None
    writes = (saved.pending_writes or []) if saved else []
    results = {id: value for id, _, value in writes if isinstance(value, dict) and value.get("call_id") == id}
    return {id: value["reply"]["text"] for id, value in results.items() if value["reply"]}


async def fork_run(
    runs: RunService,
    id: str,
    *,
    at: str,
    changes: dict[str, Any] | None = None,
    into: str | None = None,
    name: str | None = None,
    as_node: str | None = None,
) -> dict[str, str]:
    """Branch a run from one of its checkpoints without running the branch, and return its thread and checkpoint.

    Within a method the branch belongs to the same thread, whose answer is that of its latest branch; with a name it is
    a thread of its own, and the answer of this one stays. A fork into another method is always a new thread, which
    starts with the findings of this one.

    Args:
        at: the checkpoint, or what `find_checkpoint` accepts.
        changes: new values of state fields; keyed fields are merged by key, null removes a key.
        into: another method.
        name: the name of the new thread.
        as_node: the node that makes the changes, whose edges lead on; by default the one before the checkpoint.

    Raises:
        UnknownName: no such thread, checkpoint, field, node, method or archived text.
        UsageError: a field has another type, the name is used already, or a chat is given a name.
        ThreadBusy: the branch would be this thread's, and it is running.
    """
    thread, changed = await runs.store.threads.get(id), changes or {}
    nodes = runs.graph(thread).nodes
    if as_node is not None and as_node not in nodes:
        raise UnknownName("node", as_node, [name for name in nodes if name != START])
    other = into if into != thread.method else None
    async with nullcontext() if other or name else runs.store.locks.hold(id):
        states = {checkpoint_id_of(state): state for state in await runs.history(thread)}
        state = states[find_checkpoint(at, states)]
        _check_fields(thread, changed)
        if changed:
            _check_references(thread, changed, state.values)
        await runs.store.archive.load(find_hashes(changed))  # raises if one of them does not exist
        wrote = [as_node] if as_node else _wrote(state, states)
        if other:
            branch = await _fork_into(runs, thread, state, changed, into=other, name=name)
        elif name:
            branch = await _copy_to(runs, thread, state, wrote, changed, name=name)
        else:
            branch = await _branch(runs, thread, state, wrote, changed)
    place = branch["configurable"]
    return {"thread": place["thread_id"], "checkpoint": str(place["checkpoint_id"])}


def find_checkpoint(at: str, states: Mapping[str, StateSnapshot]) -> str:
    """Return the id of a checkpoint that a person names.

    Args:
        at: an id or its beginning; a step number, or a node, whose latest checkpoint counts, both on the newest branch.
        states: the states of a thread by checkpoint, the newest first.

    Raises:
        UnknownName: there is no such checkpoint.
        UsageError: the beginning fits several.
    """
    if at in states:
        return at
    branch = [*states.values()][:1]
    while branch and (parent := states.get(parent_id(branch[-1]))):
        branch.append(parent)
    steps = {str((state.metadata or {}).get("step", 0)): checkpoint_id_of(state) for state in reversed(branch)}
    nodes = {name: checkpoint_id_of(state) for state in reversed(branch) for name in _wrote(state, states)}
    checkpoint = steps.get(at) or nodes.get(at) or complete_id("checkpoint", at, states)
    if checkpoint is None:
        raise unknown_checkpoint(at, [*nodes, *states])
    return checkpoint


def _check_fields(thread: Thread, changes: dict[str, Any]) -> None:
    try:
        CheckpointSerializer().dumps_typed(changes)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"The changed fields cannot be stored: {error}.") from None
    kinds = get_type_hints(runnable(thread.method).state)
    if "schema_version" in changes:
        raise UsageError("The schema_version of a state is that of the release that wrote it: it cannot be changed.")
    for name, value in changes.items():
        if name not in kinds:
            raise UnknownName(f"state field of {thread.method}", name, list(kinds))
        if get_origin(kinds[name]) is dict and isinstance(value, dict):
            remaining = {key: entry for key, entry in value.items() if entry is not None}  # null removes a key
        else:
            remaining = value
        try:
            TypeAdapter(kinds[name]).validate_python(remaining, strict=True)
        except ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join([name, *map(str, wrong["loc"])])
            problem = f"{wrong['msg'].lower()}, not {json.dumps(wrong['input'], default=str)[:80]}"
            raise UsageError(f"A state of {thread.method} cannot have that: {place}: {problem}.") from None


def _check_references(thread: Thread, changes: dict[str, Any], before: Mapping[str, Any]) -> None:
    hints, after = get_type_hints(runnable(thread.method).state, include_extras=True), dict(before)
    for name, value in changes.items():
        is_keyed = any(mark is Keyed for mark in get_args(hints[name]))
        after[name] = merge_keys(before.get(name) or {}, [value]) if is_keyed else value
    for name, hint in hints.items():
        _check_keys(name, hint, after.get(name), after)


def _check_keys(place: str, hint: Any, value: Any, state: Mapping[str, Any]) -> None:  # noqa: ANN401 - any type
    """Raise UsageError if a part of a state names a key that the field of its `KeysOf` does not have."""
    if value is None:
        return
    kind, *arguments = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    for other in (mark.field for mark in arguments if isinstance(mark, KeysOf)):
        if unknown := [key for key in value if key not in (state.get(other) or {})]:
            raise UsageError(
                f"The changed state cannot be run: {place} names {unknown[0]!r}, which {other} does not have."
            )
    if is_typeddict(kind):
        parts = [(name, part, value.get(name)) for name, part in get_type_hints(kind, include_extras=True).items()]
    elif get_origin(kind) is dict:
        parts = [(key, get_args(kind)[1], item) for key, item in value.items()]
    elif get_origin(kind) is list:
        parts = [(str(at), get_args(kind)[0], item) for at, item in enumerate(value)]
    else:
        return
    for name, part, item in parts:
        _check_keys(f"{place}.{name}", part, item, state)


async def _branch(
    runs: RunService, thread: Thread, state: StateSnapshot, wrote: list[str], changes: dict[str, Any]
) -> RunnableConfig:
    _check_place(state, wrote, changes)
    graph, config = runs.graph(thread), runs.config(thread, checkpoint_id_of(state))
    branch = await graph.aupdate_state(with_paused_clock(config, state), changes, as_node=(wrote or [START])[-1])
    await runs.store.threads.set_state(thread.id, "queued", at=now())
    return branch


def _check_place(state: StateSnapshot, wrote: list[str], changes: dict[str, Any]) -> None:
    if "question" not in (state.values | changes if wrote else state.values):
        raise UsageError("That checkpoint is from before the question was taken in: fork from a later one.")
    if not wrote and (other := sorted(set(changes) - set(Question.__dataclass_fields__))):
        raise UsageError(f"Before the first node only question and notes can be changed, not {', '.join(other)}.")


async def _copy_to(
    runs: RunService, thread: Thread, state: StateSnapshot, wrote: list[str], changes: dict[str, Any], *, name: str
) -> RunnableConfig:
    """Create a thread of the same method that begins with a copy of a checkpoint."""
    _check_place(state, wrote, changes)
    if thread.method == CHAT:
        raise UsageError("A branch of a chat cannot have a name: fork it within its thread.")
    origin = Origin(parent=thread.id, parent_checkpoint=checkpoint_id_of(state))
    forked = await runs.start_like(
        thread, thread.question, thread.method, origin=origin, values=thread.options.values, thread=name
    )
    graph, config = runs.graph(forked), with_paused_clock(runs.config(forked), state)
    if not wrote:
        inputs = {name: state.values[name] for name in Question.__dataclass_fields__} | changes
        return await graph.aupdate_state(config, inputs, as_node=START)
    # After a step of several nodes, the edges of all of them lead on.
    whole = [StateUpdate(state.values, wrote[0]), *(StateUpdate({}, node) for node in wrote[1:])]
    copy = await graph.abulk_update_state(config, [whole])
    return await graph.aupdate_state(config, changes, as_node=wrote[-1]) if changes else copy


async def _fork_into(
    runs: RunService, thread: Thread, state: StateSnapshot, changes: dict[str, Any], *, into: str, name: str | None
) -> RunnableConfig:
    """Create a thread of another method that starts with this one's notes on sub-questions."""
    notes = merge_keys(state.values.get("notes", {}), [changes.get("notes", {})]).values()
    question = changes.get("question", state.values.get("question", thread.question))
    origin = Origin(parent=thread.id, parent_checkpoint=checkpoint_id_of(state))
    forked = await runs.start_like(thread, question, into, origin=origin, thread=name)
    # A finding for the whole question would be taken for its answer.
    remaining = [note for note in notes if not same_question(note["question"], question)]
    handed_over = {f"handed over {at}": note for at, note in enumerate(remaining, start=1)}
    inputs = {"question": forked.question, "notes": handed_over}
    return await runs.graph(forked).aupdate_state(runs.config(forked), inputs, as_node=START)


async def export_run(runs: RunService, id: str) -> dict[str, Any]:
    """Return a run as one JSON value: thread, history, all texts that its states name by hash, and its sub-runs."""
    thread = await runs.store.threads.get(id)
    states = await runs.history(thread)
    if not states:
        raise RunError(f"Thread {id} has no checkpoints yet: `sleuth resume {id}` starts it.")
    named = find_hashes([thread.options.to_json(), *(state.values for state in states)])
    texts = dict(sorted((await runs.store.archive.find(named)).items()))
    views = [view.to_json() for view in _views(states)]
    subruns = [await export_run(runs, subrun.id) for subrun in await runs.store.threads.subruns_of(id)]
    whole = {"thread": thread.to_json(), "history": views, "state": states[0].values, "texts": texts}
    return {**whole, "hops": subruns} if subruns else whole
