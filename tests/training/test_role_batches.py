from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from json_lines import write_rows

from sleuth.tools.errors import UsageError
from training.roles.tuning.batches import (
    HELD_OUT,
    IGNORED,
    Plan,
    Row,
    batches,
    decisive_tokens,
    read_examples,
)

ROWS = [Row(prompt="p", ids=[at] * (1 + at * 7 % 90), learned=1) for at in range(400)]


def test_each_row_is_in_one_batch_with_little_padding_in_an_order_by_seed() -> None:
    found = batches(ROWS, tokens=300, seed=1)
    assert Counter(row.ids[0] for batch in found for row in batch) == Counter(range(400))
    padded = [max(len(row.ids) for row in batch) * len(batch) for batch in found]
    assert max(padded) <= 300
    assert sum(padded) < 1.1 * sum(len(row.ids) for row in ROWS)
    assert found == batches(ROWS, tokens=300, seed=1)
    assert found != batches(ROWS, tokens=300, seed=2)
    assert [len(batch) for batch in batches([ROWS[12], ROWS[0]], tokens=10, seed=0)] == [1, 1]


def test_only_the_reply_is_learned() -> None:
    assert Row(prompt="p", ids=[5, 6, 7, 8], learned=2).labels == [IGNORED, IGNORED, 7, 8]


def row_of(reply: str) -> Row:
    answer, verdict = decisive_tokens(reply, [(at, at + 1) for at in range(len(reply))])
    return Row(prompt="p", ids=[0] * len(reply), learned=len(reply), answer=answer, verdict=verdict)


@pytest.mark.parametrize("answer", ["Kestrow", "", 'the \\"Oda\\"'])
def test_the_answer_weighs_as_much_as_all_the_rest(answer: str) -> None:
    reply = f'{{"answer":"{answer}","citations":[{{"source":1,"quote":"was born in Kestrow"}}]}}'
    row = row_of(reply)
    assert "".join(reply[at] for at in row.answer) == f'{answer}"'
    weights = row.weights(0.5, 0.25)
    assert sum(weights) == pytest.approx(len(reply) ** 0.5)
    assert sum(weights[at] for at in row.answer) == pytest.approx(sum(weights) / 2)
    assert len({weights[at] for at in row.answer}) == 1


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"answerable":true,"answer":"Ondry","citations":[{"source":1,"quote":"It lies off Ondry"}]}', "true"),
        ('{"facts":[3],"answer":"Ondry, an island off the coast of Sennick","known":false}', "false"),
        ('{"status":"UNCONFIDENT","question":"Who built the Pellowrig Light?","earlier_step":null}', '"UNCONFIDENT"'),
        ('{"finding":"Ondry","facts":[2, 3, 4, 5, 6, 7, 8, 9],"plan":"[SUFFICIENT]"}', '"[SUFFICIENT]"'),
        ('{"step":"When was the builder of the Pellowrig Light born?","final":true}', "true"),
    ],
)
def test_the_verdict_has_its_share_and_the_answer_its_of_the_rest(reply: str, verdict: str) -> None:
    row = row_of(reply)
    assert "".join(reply[at] for at in row.verdict) == verdict
    weights = row.weights(0.5, 0.25)
    assert sum(weights) == pytest.approx(len(reply) ** 0.5)
    assert sum(weights[at] for at in row.verdict) == pytest.approx(sum(weights) / 4)
    if row.answer:
        assert 3 / 8 <= sum(weights[at] for at in row.answer) / sum(weights) < 1 / 2


def test_steps_have_several_batches_and_rates_rise_and_fall() -> None:
    plan = Plan(tokens=300, batches_per_step=4, epochs=2, warm_up=5, rate=1.0)
    steps = plan.steps(ROWS)
    assert sum(len(batch) for step in steps for batch in step) == 2 * len(ROWS)
    assert {len(step) for step in steps[:-1]} == {4}
    rates = [plan.rate_at(step, 100) for step in range(100)]
    assert rates[0] < rates[4] == max(rates)
    assert rates[-1] < 0.01
    share = [replace(plan, warm_up=0.15).rate_at(step, 100) for step in range(100)]
    assert share.index(max(share)) == 14


def test_the_examples_of_a_question_are_learned_or_held_out_together(tmp_path: Path) -> None:
    rows = [{"question": str(at // 3), "prompt": "ab"[at % 2], "reply": "x"} for at in range(900)]
    write_rows(tmp_path / "examples.jsonl", *rows)
    learned, held_out = read_examples(tmp_path / "examples.jsonl")
    assert len(learned) + len(held_out) == 900
    assert not {row["question"] for row in learned} & {row["question"] for row in held_out}
    assert len(held_out) == pytest.approx(900 / HELD_OUT, rel=0.6)
    some = [row for rows in read_examples(tmp_path / "examples.jsonl", ["b"]) for row in rows]
    assert (len(some), {row["prompt"] for row in some}) == (450, {"b"})


def test_invalid_example_is_reported(tmp_path: Path) -> None:
    (tmp_path / "examples.jsonl").write_text('{"reply": "x"}')
    with pytest.raises(UsageError, match=r"make them with roles\.data\.examples"):
        read_examples(tmp_path / "examples.jsonl")
