"""What a stopped node leaves behind: of what it had written nothing counts, of a task that had returned all."""

import asyncio

from langgraph.checkpoint.serde.types import ERROR

from sleuth.graphs.persistence.sqlite_checkpoints import drop_partial_writes

STOPPED = (ERROR, asyncio.CancelledError())


def test_of_a_node_that_was_stopped_only_the_error_is_kept() -> None:
    assert drop_partial_writes([("notes", {"1": "found"}), STOPPED]) == [STOPPED]
    assert drop_partial_writes([STOPPED, ("branch:to:review", None)]) == [STOPPED]


def test_a_task_that_had_returned_has_returned() -> None:
    returned = [("__return__", {"reply": "yes"}), STOPPED]
    assert drop_partial_writes(returned) == returned


def test_what_ended_well_and_what_others_write_as_errors_stays() -> None:
    for writes in ([("notes", {"1": "found"})], [(ERROR, "a text"), ("notes", 1)], []):
        assert drop_partial_writes(writes) == writes
