"""Looking back at runs, branching from them, and taking them along."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from scenes import Chain, Replying, RunsFor, ask, example, finish

from sleuth.graphs.runs.execution import checkpoint_id_of
from sleuth.graphs.runs.history import (
    export_run,
    find_checkpoint,
    find_hashes,
    fork_run,
    list_checkpoints,
    replay_steps,
)
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import RunError, ThreadBusy, UnknownName, UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.types import content_hash

NOTE = {"question": "Is it high?", "finding": "it is", "passages": []}
STEP = {"thought": "", "planned": "Who?", "question": "Who?", "action": "Retrieve"}
CHANGED = {"warnings": ["looked at by hand"]}


@pytest.fixture
def settings(settings: Settings, finished_home: Path) -> Settings:
    """A home with finished runs."""
    shutil.copytree(finished_home, settings.home)
    return settings


@pytest.fixture
def done() -> str:
    """A finished PAR-RAG thread of that home."""
    return "good"


async def test_checkpoints_list_path_and_changes(runs: RunService, done: str) -> None:
    moments = await list_checkpoints(runs, done)
    oldest_first = [(moment.node, moment.next, sorted(moment.changed)) for moment in reversed(moments)][1:]
    step = [
        (["retrieve_coarse"], ["draft"], ["coarse", "searches"]),
        (["draft"], ["retrieve_fine"], ["calls", "drafts"]),
        (["retrieve_fine"], ["review"], ["fine", "searches"]),
    ]
    assert oldest_first == [
        ([], ["plan"], ["question"]),
        (["plan"], ["retrieve_coarse"], ["calls", "plan", "wave"]),
        *step,
        (["review"], ["refine"], ["calls", "notes", "wave"]),
        (["refine"], ["retrieve_coarse"], ["calls", "plan", "wave"]),
        *step,
        (["review"], ["answer"], ["calls", "notes", "wave"]),
        (["answer"], [], ["calls", "verdict"]),
    ]
    assert [moment.parent for moment in moments[:-1]] == [moment.checkpoint for moment in moments[1:]]
    assert moments[-1].parent == ""
    assert [moment.step for moment in moments] == list(range(11, -2, -1))
    assert list(moments[0].to_json()) == ["checkpoint", "parent", "step", "node", "next", "at", "changed", "source"]
    json.dumps([moment.to_json() for moment in moments])


async def test_replay_reads_back_to_the_last_known_task_only(
    runs: RunService, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = await replay_steps(runs, done)
    assert [step.node for step in steps][:2] == ["plan", "retrieve_coarse"]
    read, get = [], Pregel.aget_state

    async def count(graph: Any, at: RunnableConfig) -> Any:
        read.append(at)
        return await get(graph, at)

    monkeypatch.setattr(Pregel, "aget_state", count)
    assert await replay_steps(runs, done, known={step.task for step in steps[:-2]}) == steps[-2:]
    assert len(read) == 4  # the last checkpoint, which has no tasks, and those before the three last nodes


@pytest.mark.parametrize(
    ("at", "step"), [("3", 3), ("-1", -1), ("plan", 1), ("draft", 8), ("answer", 11), ("ID", 3), ("PREFIX", 3)]
)
async def test_checkpoint_is_named_by_id_prefix_step_or_node(runs: RunService, done: str, at: str, step: int) -> None:
    moments = {moment.step: moment for moment in await list_checkpoints(runs, done)}
    id = moments[3].checkpoint
    named = {"ID": id, "PREFIX": id[:18]}.get(at, at)
    states = await runs.history(await runs.store.threads.get(done))
    assert find_checkpoint(named, {checkpoint_id_of(state): state for state in states}) == moments[step].checkpoint


async def test_fork_at_a_node_counts_steps_of_the_newest_branch(runs: RunService, done: str) -> None:
    before = {moment.checkpoint for moment in await list_checkpoints(runs, done)}
    made = await fork_run(runs, done, at="plan", changes=CHANGED)
    again = await fork_run(runs, done, at="2", changes=CHANGED)
    moments = {moment.checkpoint: moment for moment in await list_checkpoints(runs, done)}
    assert moments[again["checkpoint"]].parent == made["checkpoint"]
    assert made["checkpoint"] not in before
    for unknown in ("99", "plans", "zz"):
        with pytest.raises(UnknownName, match="shows them, by id, step and node"):
            await fork_run(runs, done, at=unknown)


@pytest.fixture
async def short(runs_with: RunsFor) -> tuple[RunService, str, Replying]:
    """A finished thread of a question that takes one step without review, its runs and its model."""
    hop = example("q01")
    model = Replying(hop.reply_to)
    runs = runs_with(model, hop)
    answer = await ask(runs, hop.question, values={"review": False})
    return runs, answer.thread, model


@pytest.mark.parametrize("changes", [None, CHANGED])
async def test_fork_from_any_checkpoint_ends_the_same(
    short: tuple[RunService, str, Replying], changes: dict[str, Any] | None
) -> None:
    runs, id, model = short
    first = await runs.answer(id)
    moments = await list_checkpoints(runs, id)
    for at, moment in enumerate(moments[: -2 if changes else -1]):
        asked = len(model.requests)
        forked = await fork_run(runs, id, at=moment.checkpoint, changes=changes)
        thread = await runs.store.threads.get(id)
        latest = await runs.state(thread)
        assert forked == {"thread": id, "checkpoint": checkpoint_id_of(latest)}
        assert (list(latest.next), thread.state) == (moment.next, "queued")
        answer = await finish(runs, id)
        assert (answer.text, answer.citations) == (first.text, first.citations)
        assert answer.warnings == (changes or {"warnings": []})["warnings"]
        assert len(model.requests) - asked == sum("calls" in later.changed for later in moments[:at])


async def test_only_input_can_be_changed_before_the_first_node(short: tuple[RunService, str, Replying]) -> None:
    runs, id, _ = short
    taken_in = (await list_checkpoints(runs, id))[-2]
    with pytest.raises(UsageError, match="only question and notes can be changed, not warnings"):
        await fork_run(runs, id, at=taken_in.checkpoint, changes=CHANGED)
    await fork_run(runs, id, at=taken_in.checkpoint, changes={"notes": {"old": NOTE}})
    assert NOTE["finding"] in [note["finding"] for note in (await finish(runs, id)).notes]
    await fork_run(runs, id, at=taken_in.checkpoint, changes={"question": "Which shipyard?"})
    assert (await finish(runs, id)).question == "Which shipyard?"


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"notes": {"1": {**NOTE, "finding": 7}}}, r"notes\.1\.finding: input should be a valid string, not 7"),
        ({"plan": {"1": {"question": "Which?"}}}, r"plan\.1\.thought: field required"),
        ({"wave": "1"}, r"wave: input should be a valid list, not \"1\""),
        ({"coarse": {"1": ["0" * 64]}}, "no archived text '0000"),
        ({"plan": nested(5_000)}, "cannot be stored: Recursion limit"),
        ({"notes": {"1": {**NOTE, "passages": [10**40]}}}, "cannot be stored: Integer exceeds 64-bit range"),
        ({"schema_version": 99}, "cannot be changed"),
    ],
)
@pytest.mark.parametrize("into", [None, "plain-rag"])
async def test_fork_to_invalid_state_is_refused(
    runs: RunService, done: str, changes: dict[str, Any], reason: str, into: str | None
) -> None:
    at = (await list_checkpoints(runs, done))[0].checkpoint
    with pytest.raises(UsageError, match=reason):
        await fork_run(runs, done, at=at, changes=changes, into=into)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"wave": ["9"], "notes": {"2": None}}, "wave names '9', which plan does not have"),
        ({"drafts": {"9": {"answer": "", "citations": []}}}, "drafts names '9'"),
        ({"plan": {"2": None}}, "coarse names '2'"),
        ({"plan": {"2": {"needs": ["7"], **STEP}}}, "plan.2.needs names '7'"),
    ],
)
async def test_fork_to_a_state_with_unknown_keys_is_refused(
    runs: RunService, done: str, changes: dict[str, Any], place: str
) -> None:
    before = await list_checkpoints(runs, done)
    reviewed = next(moment for moment in before if moment.node == ["review"])
    with pytest.raises(UsageError, match=rf"The changed state cannot be run: {place}"):
        await fork_run(runs, done, at=reviewed.checkpoint, changes=changes)
    assert await list_checkpoints(runs, done) == before
    await fork_run(runs, done, at=reviewed.checkpoint, changes={"notes": {"2": None}})
    assert (await finish(runs, done)).status == "answered"


@pytest.mark.parametrize("kind", [KeyError, TypeError, RuntimeError, AssertionError])
async def test_bug_in_a_node_is_stored_as_failed_with_its_reason(
    runs_with: RunsFor, chain: Chain, kind: type[Exception]
) -> None:
    def broken(_request: object) -> Any:
        raise kind("a fault")

    runs = runs_with(Replying(broken))
    id = await runs.start(RunRequest(question=chain.question, method="par-rag"))
    for _ in range(2):
        with pytest.raises(kind, match="a fault"):
            await finish(runs, id)
        thread = await runs.store.threads.get(id)
        assert (thread.state, thread.outcome) == ("failed", "failed")
        assert f"{kind.__name__}: " in thread.problem
        assert "a fault" in thread.problem
        assert thread.problem.endswith(f"`sleuth resume {id}` tries again.")
        taken_in = (await list_checkpoints(runs, id))[-2]
        await fork_run(runs, id, at=taken_in.checkpoint, changes={"notes": {"old": NOTE}})


@pytest.mark.parametrize("changes", [None, CHANGED])
async def test_checkpoint_before_the_question_cannot_be_forked(runs: RunService, done: str, changes: Any) -> None:
    first = (await list_checkpoints(runs, done))[-1]
    with pytest.raises(UsageError, match="before the question was taken in: fork from a later one"):
        await fork_run(runs, done, at=first.checkpoint, changes=changes)


async def test_fork_resumes_from_its_checkpoint(runs: RunService, done: str) -> None:
    before = await list_checkpoints(runs, done)
    planned = before[-3]
    forked = await fork_run(runs, done, at=planned.checkpoint, changes=CHANGED)
    newest, *rest = await list_checkpoints(runs, done)
    assert rest == before
    assert (newest.checkpoint, newest.parent) == (forked["checkpoint"], planned.checkpoint)
    assert (newest.source, {moment.source for moment in rest}) == ("update", {"loop", "input"})
    assert (newest.next, newest.changed) == (planned.next, CHANGED)


async def test_fork_into_another_method_starts_with_findings(runs: RunService, done: str, model: Replying) -> None:
    last_review = next(moment for moment in await list_checkpoints(runs, done) if moment.node == ["review"])
    asked = len(model.requests)
    forked = await fork_run(runs, done, at=last_review.checkpoint, into="plain-rag")
    thread = await runs.store.threads.get(forked["thread"])
    assert (thread.method, thread.parent, thread.parent_checkpoint) == ("plain-rag", done, last_review.checkpoint)
    answer = await finish(runs, forked["thread"])
    (reading,) = model.requests[asked:]
    assert [step["answer"] for step in reading.input["known"]] == ["Trevandle & Ruske", "1868"]
    assert answer.method == "plain-rag"
    assert [citation["passage"] for citation in answer.citations] == ["q08-1", "q08-2"]
    assert (await finish(runs, done)).text == "1868", "the origin stays as it was"


async def test_running_run_cannot_be_branched_but_forked_away(runs: RunService, done: str) -> None:
    at = (await list_checkpoints(runs, done))[0].checkpoint
    async with runs.store.locks.hold(done):
        with pytest.raises(ThreadBusy):
            await fork_run(runs, done, at=at)
        assert (await fork_run(runs, done, at=at, into="plain-rag"))["thread"] != done
    assert (await fork_run(runs, done, at=at))["thread"] == done


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"at": "nowhere"}, "There is no checkpoint 'nowhere'.*`sleuth runs history` shows them"),
        ({"changes": {"note": {}}}, "There is no state field of par-rag 'note'. Did you mean notes"),
        ({"into": "plain"}, "There is no method 'plain'. Did you mean plain-rag"),
    ],
)
async def test_unknown_names_are_refused(runs: RunService, done: str, arguments: dict[str, Any], says: str) -> None:
    at = (await list_checkpoints(runs, done))[0].checkpoint
    before = await runs.store.threads.list_newest()
    with pytest.raises(UnknownName, match=says):
        await fork_run(runs, done, **{"at": at, **arguments})
    assert await runs.store.threads.list_newest() == before


async def test_export_contains_all_texts_of_the_run(runs: RunService, model: Replying, chain: Chain) -> None:
    answer = await ask(runs, chain.question)
    exported = await export_run(runs, answer.thread)
    json.dumps(exported)
    assert list(exported) == ["thread", "history", "state", "texts"]
    assert {request.text() for request in model.requests} <= set(exported["texts"].values())
    assert all(content_hash(text) == name for name, text in exported["texts"].items())
    assert find_hashes(exported["history"]) == exported["texts"].keys()
    for passage in chain.passages:
        assert any(passage.id in text and text.startswith("{") for text in exported["texts"].values())


async def test_run_without_checkpoints_cannot_be_exported(runs: RunService) -> None:
    id = await runs.start(RunRequest(question="?", method="plain-rag"))
    assert await list_checkpoints(runs, id) == []
    with pytest.raises(RunError, match=f"no checkpoints yet: `sleuth resume {id}` starts it"):
        await export_run(runs, id)
