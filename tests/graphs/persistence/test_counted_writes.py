"""Writes of a stopped node: none of its own count, all of a task that had returned do."""

import asyncio

from langgraph.checkpoint.serde.types import ERROR

from sleuth.graphs.persistence.sqlite_checkpoints import drop_partial_writes

STOPPED = (ERROR, asyncio.CancelledError())


def test_stopped_node_keeps_only_its_error() -> None:
    assert drop_partial_writes([("notes", {"1": "found"}), STOPPED]) == [STOPPED]
    assert drop_partial_writes([STOPPED, ("branch:to:review", None)]) == [STOPPED]


def test_returned_task_counts_as_finished() -> None:
    returned = [("__return__", {"reply": "yes"}), STOPPED]
    assert drop_partial_writes(returned) == returned


def test_writes_of_finished_tasks_are_kept() -> None:
    for writes in ([("notes", {"1": "found"})], [(ERROR, "a text"), ("notes", 1)], []):
        assert drop_partial_writes(writes) == writes
