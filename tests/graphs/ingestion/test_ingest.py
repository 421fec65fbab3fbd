from dataclasses import fields
from typing import get_type_hints

from sleuth.graphs.ingestion.graph import IngestState, IngestUpdate, after_embed, after_read, first_few, graph


def state(**values: object) -> IngestState:
    return IngestState(roots=["docs"], worklist="list", **values)  # type: ignore[arg-type]


def test_every_update_is_a_field_of_the_state() -> None:
    assert set(get_type_hints(IngestUpdate)) <= {field.name for field in fields(IngestState)}


def test_reading_runs_in_parallel_with_embedding() -> None:
    assert after_read(state()) == ["read", "embed"]
    assert after_read(state(all_read=True)) == ["embed"]
    assert after_embed(state()) == "__end__"
    assert after_embed(state(all_read=True)) == "report"


def test_nodes_are_named_as_their_functions() -> None:
    drawn = graph().compile().get_graph().draw_mermaid()
    assert all(f"{name}({name})" in drawn for name in ("discover", "read", "embed", "report"))


def test_checkpoint_keeps_only_the_first_failures() -> None:
    assert first_few(["a"], ["b"]) == ["a", "b"]
    assert len(first_few(["a"] * 15, ["b"] * 15)) == 20
