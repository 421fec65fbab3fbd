"""Comparing a graph model with one that sees no graph: which examples, which scores, and their difference."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from json_lines import write_rows

from sleuth.tools.errors import UsageError
from training.graph_llm_compare import reply_scores, unseen
from training.roles.tuning.batches import HELD_OUT

ANSWER, NEXT = "answerer/from_facts", "planner/next"


def is_held_out(question: int) -> bool:
    return int(sha256(str(question).encode()).hexdigest(), 16) % HELD_OUT == 0


LEARNED = [at for at in range(200) if not is_held_out(at)][:5]
HELD = [at for at in range(200) if is_held_out(at)][:3]


def example(question: int, prompt: str, reply: str, shown: str = "facts") -> dict[str, Any]:
    sent = [{"role": "user", "content": f"{question} {shown}"}]
    return {"question": str(question), "prompt": prompt, "messages": sent, "reply": reply}


def answering(question: int, answer: str = "Varn") -> dict[str, Any]:
    return example(question, ANSWER, json.dumps({"facts": [1], "answer": answer, "known": True}))


def test_unseen_are_the_held_out_questions_and_those_that_were_not_learned(tmp_path: Path) -> None:
    tuned_on = write_rows(tmp_path / "examples.jsonl", *(answering(at) for at in (*LEARNED[:3], HELD[0])))
    everything = [answering(at) for at in (*LEARNED, *HELD)]
    others = [example(at, "extractor/extract", "{}") for at in HELD]
    rows = unseen(write_rows(tmp_path / "all.jsonl", *everything, *everything, *others), tuned_on)
    assert sorted(int(row["question"]) for row in rows) == sorted([*LEARNED[3:], *HELD])
    assert {row["prompt"] for row in rows} == {ANSWER}
    assert len(unseen(tmp_path / "all.jsonl", tuned_on, limit=2)) == 2
    assert [row["question"] for row in unseen(tuned_on, tuned_on)] == [str(HELD[0])]


def test_learned_questions_alone_are_refused(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "examples.jsonl", answering(LEARNED[0]))
    with pytest.raises(UsageError, match="were learned: compare with others"):
        unseen(file, file)


@pytest.mark.parametrize(
    ("said", "scores"),
    [
        ('{"facts":[],"answer":"the Varn","known":true}', (1.0, 1.0)),
        ('{"facts":[],"answer":"Varn Isk","known":true}', (2 / 3, 0.0)),
        ('{"facts":[', (0.0, 0.0)),
    ],
)
def test_answers_are_scored_by_f1_and_exact_match(said: str, scores: tuple[float, float]) -> None:
    found = reply_scores(answering(1), said)
    valid = float(said.endswith("}"))
    assert found == {"answer_f1": pytest.approx(scores[0]), "answer_em": scores[1], "valid": valid}


def test_plan_is_scored_by_its_label_alone() -> None:
    row = example(1, NEXT, '{"plan":"[SUBQ]","query":"Where is Varn?"}')
    assert reply_scores(row, '{"plan":"[SUBQ]","query":"Who is Oda?"}') == {"plan": 1.0, "valid": 1.0}
    assert reply_scores(row, '{"plan":"[SUFFICIENT]"}') == {"plan": 0.0, "valid": 1.0}
    assert reply_scores(row, "[SUBQ]") == {"plan": 0.0, "valid": 0.0}
