"""The list of runs, and whose each is."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert, text

from sleuth.graphs.core.answer import Answer, Status, Support, total_cost
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import tables as module
from sleuth.graphs.persistence import threads as threads_module
from sleuth.graphs.persistence.run_filter import RunFilter, select_runs
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.thread import RunResult, StoredOptions, Thread
from sleuth.graphs.persistence.threads import Threads
from sleuth.tools.errors import RunError, UnknownName, UsageError


def thread(id: str, at: str = "2026-01-01", owner: str = "local") -> Thread:
    return Thread(
        id=id, owner=owner, method="plain-rag", question="?", options=StoredOptions(budget=Budget()), updated_at=at
    )


async def test_threads_are_listed_latest_first(store: Store) -> None:
    for id, at in (("a", "2026-01-02"), ("b", "2026-01-03"), ("c", "2026-01-01")):
        await store.threads.add(thread(id, at))
    assert [each.id for each in await store.threads.list_newest()] == ["b", "a", "c"]
    assert [each.id for each in await store.threads.list_newest(limit=1)] == ["b"]
    assert [each.id for each in await store.threads.list_newest(RunFilter(before="2026-01-02"))] == ["c"]


async def test_runs_are_found_by_words_of_question_and_answer_in_any_case(store: Store) -> None:
    await store.threads.add(replace(thread("monday"), question="Wo liegt die Ölmühle?"))
    await store.threads.add(replace(thread("tuesday"), question="50% of what?"))
    await store.threads.set_state("monday", "done", at="2026-02-02", result=RESULT)
    for find, found in {"ölm SENN": ["monday"], "% wha": ["tuesday"], "tolvane": [], "die": ["monday"]}.items():
        assert [each.id for each in await store.threads.list_newest(RunFilter(find=find), 5)] == found


async def test_subruns_are_counted_instead_of_listed(store: Store) -> None:
    await store.threads.add(replace(thread("monday", "2026-01-01"), question='{"hop": 1}'))
    for number in (1, 2):
        await store.threads.add(replace(thread(f"monday.{number}", "2026-01-02"), subrun=number, parent="monday"))
    told = {"options": StoredOptions(where='"subrun": 1'), "client_metadata": {"subrun": 2, "hop": 1}}
    await store.threads.add(replace(thread("fork", "2026-01-03"), parent="monday", **told))
    assert [each.id for each in await store.threads.list_newest(RunFilter(with_subruns=False))] == ["fork", "monday"]
    assert [each.id for each in await store.threads.list_newest(RunFilter(with_subruns=False), 1)] == ["fork"]
    assert await store.threads.count_subruns(["monday", "fork"]) == {"monday": 2}


FILTERS = {
    "sleuth_threads_latest": RunFilter(),
    "sleuth_threads_outcome": RunFilter(outcomes=("failed",)),
    "sleuth_threads_method": RunFilter(methods=("par-rag",), with_subruns=False),
}


@pytest.mark.parametrize("index", FILTERS)
async def test_listing_of_many_runs_uses_an_index(store: Store, index: str) -> None:
    query = select_runs("local", FILTERS[index], 50)
    asked = query.compile(store.engine, compile_kwargs={"literal_binds": True})
    with store.engine.connect() as connection:
        plan = [str(row.detail) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {asked}"))]
    assert any(index in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), "all are sorted"
    assert not any(step.startswith("SCAN") for step in plan), "all are read"


RESULT = RunResult(verdict="unknown", answer="No fair in Sennick.", calls=3, tokens=900, seconds=1.5)


async def test_result_is_listed_until_the_run_is_resumed(store: Store) -> None:
    await store.threads.add(thread("monday"))
    assert (await store.threads.get("monday")).outcome == "queued"
    await store.threads.set_state("monday", "done", at="2026-02-02", result=RESULT)
    found = await store.threads.get("monday")
    assert (found.outcome, found.verdict, found.answer) == ("unknown", "unknown", "No fair in Sennick.")
    assert (found.calls, found.tokens, found.seconds) == (3, 900, 1.5)
    (cost,) = (await store.threads.average_costs()).values()
    assert (cost.runs, cost.calls, cost.tokens, cost.seconds) == (1, 3, 900, 1.5)
    await store.threads.set_state("monday", "running", at="2026-02-03")
    async with store.locks.hold("monday"):
        assert (await store.threads.get("monday")).outcome == "running"
    assert (await store.threads.get("monday")).outcome == "stopped"


@pytest.mark.parametrize(
    ("status", "support", "expected"),
    [
        ("answered", Support(score=0.3, answerable=0.9, weak=True), True),
        ("answered", Support(score=0.9, answerable=0.9), False),
        ("answered", None, None),
        ("unknown", Support(score=0.1, answerable=0.9, weak=True), False),
    ],
)
async def test_weak_answer_is_listed_as_weak(
    store: Store, status: Status, support: Support | None, *, expected: bool | None
) -> None:
    cost = total_cost({})
    answer = Answer(
        thread="a", checkpoint="1", method="par-rag", question="?", status=status, text="A", cost=cost, support=support
    )
    await store.threads.add(thread("a"))
    await store.threads.set_state("a", "done", at="2026-02-02", result=RunResult.of(answer))
    assert [each.weak for each in await store.threads.list_newest()] == [expected]
    assert bool(await store.threads.list_newest(RunFilter(weak=True))) == bool(expected)


async def test_pages_of_runs_that_changed_in_the_same_moment_are_complete(store: Store) -> None:
    for id in "abc":
        await store.threads.add(thread(id))
    first = await store.threads.list_newest(RunFilter(), 2)
    rest = await store.threads.list_newest(RunFilter(before=first[-1].updated_at, before_id=first[-1].id), 2)
    assert [each.id for each in (*first, *rest)] == ["c", "b", "a"]


async def test_killed_run_is_found_as_stopped(store: Store) -> None:
    write(store, row("lost", "running"))
    assert [each.id for each in await store.threads.list_newest(RunFilter(outcomes=("stopped",)), 5)] == ["lost"]
    assert await store.threads.list_newest(RunFilter(outcomes=("running",)), 5) == []


async def test_filtered_pages_are_full_when_runs_were_killed(store: Store) -> None:
    for id, outcome in (("held", "running"), ("lost", "running"), ("asked", "stopped")):
        write(store, row(id, outcome))
    async with store.locks.hold("held"):
        for outcome, ids in (("running", ["held"]), ("stopped", ["lost", "asked"])):
            pages = [
                await store.threads.list_newest(RunFilter(outcomes=(outcome,), offset=offset), 1)
                for offset in range(len(ids) + 1)
            ]
            assert [each.id for page in pages for each in page] == ids


async def test_runs_are_found_by_the_metadata_of_their_clients(store: Store) -> None:
    stored: dict[str, dict[str, Any]] = {
        "text": {"user": "ada", "a b": 1, "": None},
        "flag": {"user": True, 'say "x"': "é"},
        "number": {"user": 1.0},
        "nested": {"user": {"b": [1], "a": "ö"}},
    }
    for id, metadata in stored.items():
        await store.threads.add(replace(thread(id), client_metadata=metadata))
    expected: list[tuple[dict[str, Any], set[str]]] = [
        ({"user": "ada"}, {"text"}),
        ({"user": True}, {"flag"}),
        ({"user": 1}, {"number"}),
        ({"user": {"a": "ö", "b": [1]}}, {"nested"}),
        ({"": None, "a b": 1}, {"text"}),
        ({'say "x"': "é"}, {"flag"}),
        ({"user": "ada", "a b": 2}, set()),
        ({"other": None}, set()),
        ({}, {*stored}),
    ]
    for metadata, ids in expected:
        found = await store.threads.list_newest(RunFilter(metadata=metadata))
        assert {each.id for each in found} == ids, metadata
        assert all(each.client_metadata == stored[each.id] for each in found)


async def test_metadata_and_feedback_leave_what_others_write(store: Store) -> None:
    await store.threads.add(replace(thread("monday"), client_metadata={"a": 1, "b": 1}))
    read = await store.threads.get("monday")
    options = StoredOptions(values={"k": 9})
    await store.threads.set_state("monday", "queued", at="2026-02-02", options=options)
    await store.threads.merge_metadata("monday", {"b": 2})
    await store.threads.set_feedback("monday", {"rating": "up"})
    assert await store.threads.get("monday") == replace(
        read, options=options, updated_at="2026-02-02", client_metadata={"a": 1, "b": 2}, feedback={"rating": "up"}
    )


async def test_metadata_is_limited_for_a_thread_and_an_owner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="16,384 characters of metadata or feedback, these are"):
        await store.threads.add(replace(thread("long"), client_metadata={"a": "x" * 20_000}))
    monkeypatch.setattr(threads_module, "MAX_METADATA_OF_OWNER", 100)
    for id in "ab":
        await store.threads.add(replace(thread(id), client_metadata={"a": "x" * 30}))
    with pytest.raises(UsageError, match="metadata of all threads is longer than 100 characters: delete some"):
        await store.threads.add(replace(thread("c"), client_metadata={"a": "x" * 30}))
    await store.threads.merge_metadata("a", {"a": "y" * 50})
    with pytest.raises(UsageError, match="all threads"):
        await store.threads.merge_metadata("b", {"b": "y" * 50})
    await store.threads.add(thread("d"))
    theirs = Threads(store.engine, "somebody", store.locks)
    await theirs.add(replace(thread("e", owner="somebody"), client_metadata={"a": "x" * 30}))


@pytest.mark.parametrize("metadata", [{"a": ["\ud800"]}, {"\x00": 1}, {"a": float("nan")}, {"a": 2**63}])
async def test_metadata_that_no_database_stores_is_refused(store: Store, metadata: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"remove it|send it as a text|send null"):
        await store.threads.add(replace(thread("monday"), client_metadata=metadata))


async def test_new_run_with_a_used_name_is_refused(store: Store) -> None:
    await Threads(store.engine, "somebody", store.locks).add(thread("monday", owner="somebody"))
    with pytest.raises(RunError, match="Thread monday was used already"):
        await store.threads.add(thread("monday"))
    with pytest.raises(RunError, match="Thread monday was used already"):
        await store.threads.add(thread("monday"), replaces_empty=True)


async def test_run_begins_in_a_created_thread_and_keeps_what_the_client_stored(store: Store) -> None:
    created = replace(thread("monday"), question="", client_metadata={"a": 1}, created_at="2026-01-01", state="done")
    await store.threads.add(created)
    await store.threads.merge_metadata("monday", {"b": 2})
    await store.threads.add(replace(thread("monday", "2026-02-02"), created_at="2026-02-02"), replaces_empty=True)
    found = await store.threads.get("monday")
    assert (found.question, found.state, found.updated_at) == ("?", "queued", "2026-02-02")
    assert (found.created_at, found.client_metadata) == ("2026-01-01", {"a": 1, "b": 2})
    with pytest.raises(RunError, match="used already"):
        await store.threads.add(thread("monday"), replaces_empty=True)


async def test_unknown_thread_is_compared_with_few_ids(store: Store) -> None:
    write(store, *(row(f"run-{at:05}", "done") for at in range(2000)), row("monday", "done"))
    for asked, similar in (("monny", "monday"), ("run-01234x", "run-01234"), ("run-1234x", "run-019")):
        with pytest.raises(UnknownName, match=f"Did you mean {similar}"):
            await store.threads.get(asked)


async def test_threads_of_others_are_hidden_but_names_are_used(store: Store) -> None:
    theirs = Threads(store.engine, "somebody", store.locks)
    await theirs.add(thread("monday", owner="somebody"))
    assert await store.threads.list_newest() == []
    assert await store.threads.exists("monday")
    with pytest.raises(UnknownName, match=r"There is no thread 'monday'\. `sleuth runs list` shows them"):
        await store.threads.get("monday")
    await store.threads.remove("monday")
    assert await theirs.get("monday") == thread("monday", owner="somebody")


async def test_subruns_are_found_by_their_run_and_forks_are_not(store: Store) -> None:
    for id, parent, number in (("late", "monday", 2), ("early", "monday", 1), ("fork", "monday", 0), ("other", "x", 1)):
        await store.threads.add(replace(thread(id), parent=parent, subrun=number))
    subruns = await store.threads.subruns_of("monday")
    assert [(each.id, each.subrun, each.part_of) for each in subruns] == [("early", 1, "monday"), ("late", 2, "monday")]
    fork = await store.threads.get("fork")
    assert (fork.parent, fork.subrun, fork.part_of) == ("monday", 0, "")
    assert subruns[0].to_json()["part_of"] == "monday"


async def test_thread_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    for id in ("monday", "monday.1.6c2e", "money", "a_b", "axb"):
        await store.threads.add(thread(id))
    assert [await store.threads.complete(each) for each in ("mond", "monday.1", "mone", "a_")] == [
        "monday",
        "monday.1.6c2e",
        "money",
        "a_b",
    ]
    with pytest.raises(UsageError, match="Several threads begin with 'mon': monday, money"):
        await store.threads.complete("mon")
    with pytest.raises(UnknownName, match="Did you mean money"):
        await store.threads.complete("monny")


def row(id: str, state: str, parent: str = "", subrun: int = 0) -> dict[str, Any]:
    """A row of the table."""
    names = ("question", "problem", "parent_checkpoint", "created_at", "updated_at")
    own = {"id": id, "owner": "local", "method": "plain-rag", "options": "{}", "state": state, "parent": parent}
    own |= {"subrun": subrun, "outcome": state, "feedback": "{}", "client_metadata": "{}"}
    return {**dict.fromkeys(names, ""), **own}


def write(store: Store, *rows: dict[str, Any]) -> None:
    with store.engine.execution_options(sleuth_write=True).begin() as connection:
        connection.execute(insert(module.threads), [*rows])


async def test_running_thread_without_lock_is_interrupted(store: Store) -> None:
    write(store, row("lost", "running"), row("held", "running"), row("part", "running", parent="lost", subrun=1))
    async with store.locks.hold("held"):
        found = {each.id: each.state for each in await store.threads.list_newest()}
        assert found == {"lost": "interrupted", "held": "running", "part": "interrupted"}
        assert {each.id: each.state for each in await store.threads.list_all_owners()} == found
        assert {id: (await store.threads.get(id)).state for id in found} == found
        assert [each.state for each in await store.threads.subruns_of("lost")] == ["interrupted"]
    assert (await store.threads.get("held")).state == "interrupted"


async def test_run_that_ends_while_it_is_read_is_not_interrupted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def held(_: object) -> set[str]:
        await store.threads.set_state("monday", "done", at="2026-01-01")
        return set()

    write(store, row("monday", "running"))
    monkeypatch.setattr(store.locks, "held", held)
    assert (await store.threads.get("monday")).state == "done"


@pytest.mark.parametrize(
    ("before", "after"),
    [("queued", "stopped"), ("interrupted", "stopped"), ("running", "running"), ("done", "done"), ("failed", "failed")],
)
async def test_mark_stopped_changes_only_unfinished_threads(store: Store, before: str, after: str) -> None:
    write(store, row("monday", before))
    await store.threads.mark_stopped("monday", at="2026-01-01")
    async with store.locks.hold("monday"):
        assert (await store.threads.get("monday")).state == after
