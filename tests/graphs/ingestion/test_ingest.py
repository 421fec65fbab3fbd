from sleuth.graphs.ingestion.graph import IngestState, after_embed, after_read, first_few


def state(**values: object) -> IngestState:
    return IngestState(roots=["docs"], worklist="list", **values)  # type: ignore[arg-type]


def test_reading_runs_in_parallel_with_embedding() -> None:
    assert after_read(state()) == ["read", "embed"]
    assert after_read(state(all_read=True)) == ["embed"]
    assert after_embed(state()) == "__end__"
    assert after_embed(state(all_read=True)) == "report"


def test_checkpoint_keeps_only_the_first_failures() -> None:
    assert first_few(["a"], ["b"]) == ["a", "b"]
    assert len(first_few(["a"] * 15, ["b"] * 15)) == 20
