from itertools import permutations

from sleuth.graphs.answer import cost_of


def call(seconds: float) -> dict[str, object]:
    tokens = {"prompt_tokens": 5, "cached_tokens": 2, "completion_tokens": 3}
    return {"node": "draft", "seconds": seconds, **tokens}


def test_what_a_run_has_cost_does_not_depend_on_which_reply_came_first() -> None:
    calls = [call(seconds) for seconds in (0.0005, 0.0015, 1.2345, 0.0005)]
    totals = [cost_of(dict(enumerate(order))) for order in permutations(calls)]
    assert all(total == totals[0] for total in totals)
    assert totals[0]["seconds"] == totals[0]["nodes"]["draft"]["seconds"] == 1.237
    assert (totals[0]["calls"], totals[0]["prompt_tokens"], totals[0]["cached_tokens"]) == (4, 20, 8)
