"""Values of nearly the right type in replies of roles."""

import json
from typing import Any

import pytest
from scripted_model import reply

from sleuth.agents.formatting import UNNAMED, Quote
from sleuth.agents.model_calls.output_parsing import Unparsable, parse, parse_reply
from sleuth.agents.roles.hybrid import Calls
from sleuth.agents.roles.judging import REVIEW, Review
from sleuth.agents.roles.planning import PLAN, FollowUp, Plan, PlanStep
from sleuth.agents.roles.reading import READ, Extraction, FromFacts, Names, Reading, Triple
from sleuth.agents.roles.surveying import PLAN_SURVEY


def reading(**changed: Any) -> str:
    return json.dumps({"answerable": True, "answer": "Ada", "citations": []} | changed)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (1871, "1871"),
        (12.0, "12"),
        (2.5, "2.5"),
        (["Ada", "Bo"], "Ada, Bo"),
        ({"text": "Ada"}, "Ada"),
        ([{"name": "Ada"}, 7], "Ada, 7"),
        (True, "yes"),
        (None, ""),
    ],
)
def test_answer_of_another_type_is_its_text(answer: object, text: str) -> None:
    assert parse(reading(answer=answer), Reading).answer == text


@pytest.mark.parametrize("answerable", ["yes", "True.", "YES, they do", 1, "“yes”"])
def test_flag_in_words_is_a_boolean(answerable: object) -> None:
    assert parse(reading(answerable=answerable), Reading).answerable
    assert not parse(reading(answerable="No."), Reading).answerable


LINE = "The mill was built in 1871."
NAMED, WHOLE, FOUND = Quote(source=2), Quote(source=2, quote=LINE), Quote(quote=LINE)


@pytest.mark.parametrize(
    ("citations", "quotes"),
    [
        (None, []),
        ("", []),
        ([2], [NAMED]),
        ("[2]", [NAMED]),
        ("2", [NAMED]),
        ("[1] [2]", [Quote(source=1), NAMED]),
        (["[2]", "Source 2"], [NAMED, NAMED]),
        ({"source": 2, "quote": LINE}, [WHOLE]),
        ([{"source": "[2]", "quote": LINE}], [WHOLE]),
        ([{"source": "source-2", "quote": [LINE]}], [WHOLE]),
        ([[{"source": 2, "quote": LINE}]], [WHOLE]),
        ([LINE], [FOUND]),
        ([{"source": "The Old Mill", "quote": LINE}], [FOUND]),
        ([{"source": 0, "quote": LINE}, {"source": -1, "quote": LINE}], [FOUND, FOUND]),
        ([{"quote": LINE}, None, {"source": 2, "quote": None}], [FOUND, NAMED]),
    ],
)
def test_citations_in_other_forms_are_read(citations: object, quotes: list[Quote]) -> None:
    assert parse(reading(citations=citations), Reading).citations == quotes
    assert Quote().source == UNNAMED


def test_citation_that_is_dropped_has_a_warning() -> None:
    text = reading(citations=[{"source": 1, "quote": {"a": 1, "b": 2}}, True, {"source": 1, "quote": LINE}])
    output, losses = parse_reply(READ, reply(text))
    assert output.citations == [Quote(source=1), Quote(source=1, quote=LINE)]
    assert sorted(loss.partition(":")[0] for loss in losses) == [
        "citations.0.quote was dropped",
        "citations.1 was dropped",
    ]


@pytest.mark.parametrize(
    ("steps", "plan"),
    [
        ([{"thought": None, "question": "Who?", "action": "retrieve", "needs": None}], [PlanStep(question="Who?")]),
        ([{"question": "Who?", "action": "ANSWER."}], [PlanStep(question="Who?", action="Answer")]),
        ([{"question": "Who?", "action": "Retrieve (search)"}], [PlanStep(question="Who?")]),
        (
            ["Who?", {"question": "Where?", "needs": "step 1"}],
            [PlanStep(question="Who?"), PlanStep(question="Where?", needs=[1])],
        ),
        ({"question": "Who?"}, [PlanStep(question="Who?")]),
        ("Who?", [PlanStep(question="Who?")]),
        ([{"question": "Who?"}, {"thought": "hm"}, {"question": ""}], [PlanStep(question="Who?")]),
        (
            ["Who?" + "?" * 300],
            [PlanStep.model_construct(thought="", question="Who?" + "?" * 236, action="Retrieve", needs=[])],
        ),
    ],
)
def test_plan_in_other_forms_is_read(steps: object, plan: list[PlanStep]) -> None:
    assert parse(json.dumps({"steps": steps}), Plan).steps == plan


def test_plan_with_an_unknown_action_searches_and_warns() -> None:
    output, losses = parse_reply(PLAN, reply('[{"question": "Who?", "action": "Look up"}]'))
    assert output.steps == [PlanStep(question="Who?")]
    assert len(losses) == 1 and losses[0].startswith("steps.0.action was dropped")


def test_other_outputs_are_read_in_nearly_the_right_type() -> None:
    assert parse('{"follow_up": "yes.", "question": "Who?"}', FollowUp).follow_up == "Yes"
    assert parse('{"follow_up": false, "answer": 7}', FollowUp) == FollowUp(follow_up="No", answer="7")
    assert parse('{"facts": "1, [3]", "answer": "Ada", "known": "Yes"}', FromFacts).facts == [1, 3]
    assert parse('["Ada", 7, ""]', Names).names == ["Ada", "7"]
    assert parse('{"result": {"names": "Ada"}}', Names).names == ["Ada"]
    review = parse('[{"status": "pass", "earlier_step": "none"}]', Review)
    assert (review.status, review.earlier_step) == ("PASS", None)
    assert parse('{"status": "Pass", "earlier_step": "#2"}', Review).earlier_step == 2
    (call,) = parse('{"calls": {"function": "get_year", "arguments": {"name": "Varn", "year": 1871}}}', Calls).calls
    assert [(each.name, each.value) for each in call.arguments] == [("name", "Varn"), ("year", "1871")]
    fact = {"subject": "Ada", "predicate": "built", "object": 7}
    assert parse(json.dumps([fact, "no fact", {"subject": "x"}]), Extraction).triples == [
        Triple(subject="Ada", predicate="built", object="7")
    ]


@pytest.mark.parametrize(
    ("operator", "read"), [("contains", "contains"), ("Contains", "contains"), (">=", ">="), ("at least", "=")]
)
def test_operator_is_matched_or_dropped_with_a_warning(operator: str, read: str) -> None:
    condition = {"column": "year", "operator": operator, "value": "1871"}
    said = {"columns": [{"name": "year", "question": "Which year?"}], "conditions": [condition]}
    output, losses = parse_reply(PLAN_SURVEY, reply(json.dumps(said)))
    assert [condition.operator for condition in output.conditions] == [read]
    assert len(losses) == (operator == "at least")


@pytest.mark.parametrize(
    "text",
    [
        reading(answerable="perhaps"),
        reading(answerable=None),
        reading(answer={"first": "Ada", "last": "Brask"}),
        '{"status": "FINE"}',
        '{"status": "REVISED", "answer": null}',
        '{"status": "REVISED", "answer": " "}',
        '{"status": "UNCONFIDENT"}',
        '{"steps": []}',
        json.dumps({"steps": [{"question": f"Who {number}?", "needs": ["x"] * 4} for number in range(40)]}),
        '{"smile": 1}',
    ],
)
def test_reply_that_cannot_be_understood_is_refused(text: str) -> None:
    output = Plan if "steps" in text else REVIEW.output if "status" in text else Reading
    with pytest.raises(Unparsable):
        parse(text, output)
