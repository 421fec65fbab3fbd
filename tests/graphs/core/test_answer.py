from sleuth.graphs.core.answer import public_subruns, upgrade_cost


def call(seconds: float) -> dict[str, object]:
    tokens = {"prompt_tokens": 5, "cached_tokens": 2, "completion_tokens": 3}
    return {"node": "draft", "seconds": seconds, **tokens}


def test_stored_cost_of_older_release_has_model_seconds() -> None:
    node = {"calls": 1, "prompt_tokens": 3, "completion_tokens": 1}
    old = {**node, "cached_tokens": 0, "seconds": 2.5, "nodes": {"draft": {**node, "seconds": 2.5}}}
    new = {**node, "cached_tokens": 0, "model_seconds": 2.5, "nodes": {"draft": {**node, "model_seconds": 2.5}}}
    assert upgrade_cost(old) == new
    assert upgrade_cost(new) == new


def test_public_subruns_from_old_state_uses_present_names() -> None:
    hop = {"method": "par-rag", "status": "new", "cost": {"calls": 0, "seconds": 0.0, "nodes": {}}}
    (shown,) = public_subruns({"hops": {"1": hop}}) or []
    assert (shown["status"], shown["cost"]["model_seconds"]) == ("queued", 0.0)
    assert public_subruns({}) is None
