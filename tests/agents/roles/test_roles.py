from typing import Any

import jsonschema
import pytest

from sleuth.agents.roles.judging import REVIEW, Review
from sleuth.agents.roles.planning import Plan, PlanStep


def step(question: str, *needs: int) -> PlanStep:
    return PlanStep(question=question, needs=list(needs))


def test_plan_needs_earlier_steps_and_merges_repeated_questions() -> None:
    plan = Plan(steps=[step("a", 1, 2), step("b", 1), step("c", 3, 2, 2)])
    assert [found.needs for found in plan.steps] == [[], [1], [2]]
    plan = Plan(steps=[step("a"), step("A "), step("b", 2), step("c", 2, 3)])
    assert [(found.question, found.needs) for found in plan.steps] == [("a", []), ("b", [1]), ("c", [1, 2])]


QUOTE = {"source": 1, "quote": "in Varn"}
REVISED = {"status": "REVISED", "answer": "Varn", "citations": [QUOTE]}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"status": "PASS"}, True),
        ({"status": "PASS", "answer": "Varn"}, False),
        (REVISED, True),
        ({**REVISED, "citations": []}, False),
        ({"status": "UNCONFIDENT", "question": "Where?", "earlier_step": None}, True),
        ({"status": "UNCONFIDENT", "question": "Where?", "earlier_step": 0}, False),
    ],
)
def test_review_schema_allows_the_fields_of_its_status(value: dict[str, Any], fits: bool) -> None:
    schema = REVIEW.schema()
    assert schema is not None
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is fits
    if fits:
        assert Review.model_validate(value).status == value["status"]
