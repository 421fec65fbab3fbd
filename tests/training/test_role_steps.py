"""Steps of questions that have none of their own: from decompositions in Break's form, or written by a model."""

from pathlib import Path
from typing import Any

import pytest
from json_lines import write_rows
from scripted_model import ScriptedModel

from sleuth.agents.roles.planning import SubQueryOfDocument
from sleuth.tools.errors import UsageError
from training.questions import TrainingQuestion, read
from training.roles.data.decompositions import (
    GoldPassage,
    add_steps,
    map_steps,
    read_decompositions,
)
from training.roles.data.examples import METHODS, plan_runs
from training.roles.data.sub_queries import write_steps

FERRY = GoldPassage("p1", "Ferry", "The ferry was built for Oda Brask of Tolvane.")
BRASK = GoldPassage("p2", "Oda Brask (mayor)", "Oda Brask was born in Kestrow.")
ASKED = "Where was the one born for whom the ferry was built?"
STEPS = ["the one for whom the ferry was built", "where was #1 born"]
MAPPED = [
    {"question": "What is the one for whom the ferry was built?", "answer": "Oda Brask", "gold_id": "p1"},
    {"question": "Where was #1 born?", "answer": "Kestrow", "gold_id": "p2"},
]


def paragraph(passage: GoldPassage, *, gold: bool = True) -> dict[str, Any]:
    return {"title": passage.title, "text": passage.text, "is_supporting": gold}


ROW: dict[str, Any] = {
    "id": "1",
    "question": ASKED,
    "answer": "Kestrow",
    "type": None,
    "level": "hard",
    "paragraphs": [
        paragraph(BRASK),
        paragraph(GoldPassage("", "Rain", "Rain falls."), gold=False),
        paragraph(FERRY),
    ],
}


@pytest.mark.parametrize("passages", [[FERRY, BRASK], [BRASK, FERRY]])
def test_steps_of_a_chain_have_the_passages_that_they_need(passages: list[GoldPassage]) -> None:
    assert map_steps(ASKED, "Kestrow", STEPS, passages) == MAPPED


@pytest.mark.parametrize(
    ("question", "answer", "steps", "passages"),
    [
        pytest.param(ASKED, "Kestrow", [*STEPS, "#1 and #2"], [FERRY, BRASK], id="more steps than passages"),
        pytest.param(ASKED, "Kestrow", STEPS, [FERRY], id="one passage"),
        pytest.param(ASKED, "Kestrow", ["the ferry", "where was she born"], [FERRY, BRASK], id="no reference"),
        pytest.param(ASKED, "Kestrow", [STEPS[0], "#1 that was born"], [FERRY, BRASK], id="a restriction"),
        pytest.param(ASKED, "Varn", STEPS, [FERRY, BRASK], id="the answer is not there"),
        pytest.param("Where was Oda Brask born?", "Kestrow", STEPS, [FERRY, BRASK], id="the bridge is known"),
        pytest.param(ASKED, "Oda Brask", STEPS, [FERRY, BRASK], id="the bridge is the answer"),
        pytest.param(
            ASKED, "Kestrow", STEPS, [FERRY._replace(text="The ferry was built for her."), BRASK], id="no bridge"
        ),
        pytest.param(ASKED, "Kestrow", ["who was born in Kestrow", STEPS[1]], [FERRY, BRASK], id="the other passage"),
    ],
)
def test_steps_that_are_not_such_a_chain_are_dropped(
    question: str, answer: str, steps: list[str], passages: list[GoldPassage]
) -> None:
    assert map_steps(question, answer, steps, passages) == []


def test_decompositions_are_joined_by_the_words_of_the_question(tmp_path: Path) -> None:
    own = {**ROW, "id": "2", "decomposition": [{"question": "Own?", "answer": "Kestrow", "paragraph": 0}]}
    unplaced = {**ROW, "id": "3", "decomposition": [{"question": "Where?", "answer": "Kestrow"}]}
    file = write_rows(tmp_path / "train.jsonl", ROW, own, unplaced)
    given = {"question": f"{ASKED.lower()[:-1]} ?", "dataset": "hotpot", "decomposition": STEPS}
    known = read([file])
    add_steps(known, read_decompositions(write_rows(tmp_path / "break.jsonl", given)))
    first, second, third = known.questions
    assert [step["question"] for step in first["decomposition"]] == [step["question"] for step in MAPPED]
    assert [known.passages[step["gold_id"]][0] for step in first["decomposition"]] == ["Ferry", "Oda Brask (mayor)"]
    assert [step["question"] for step in second["decomposition"]] == ["Own?"]
    assert third["decomposition"] == first["decomposition"]
    played = {turn.method for turn in plan_runs(known, seed=0, limit=None) if turn.row["id"] == "1"}
    assert played == set(METHODS)
    assert read([file]).questions[0]["decomposition"] == []
    with pytest.raises(UsageError, match=r"break\.jsonl, line 1"):
        read_decompositions(write_rows(tmp_path / "break.jsonl", {"question": ASKED}))


FIRST = SubQueryOfDocument(question="For whom was the ferry built?", answer="Oda Brask")
SECOND = SubQueryOfDocument(question="Where was Oda Brask born?", answer="in Kestrow")


async def test_model_writes_a_sub_query_for_each_gold_passage() -> None:
    model = ScriptedModel([FIRST, SECOND])
    assert await write_steps(model, TrainingQuestion(**ROW)) == [
        {"question": "For whom was the ferry built?", "answer": "Oda Brask", "paragraph": 2},
        {"question": "Where was #1 born?", "answer": "Kestrow", "paragraph": 0},
    ]
    model.done()
    shown = [request.messages[-1]["content"] for request in model.requests]
    assert "The ferry was built" in shown[0]
    assert "For whom was the ferry built?" not in shown[0]
    assert "For whom was the ferry built?" in shown[1]
    assert "Rain" not in "".join(shown)


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param([FIRST.model_copy(update={"answer": "Lena Holt"})], id="the answer is not in the passage"),
        pytest.param([FIRST.model_copy(update={"answer": ""})], id="no answer"),
        pytest.param(["no JSON"], id="unreadable"),
        pytest.param([FIRST, SECOND.model_copy(update={"answer": "Oda"})], id="another answer"),
        pytest.param([SubQueryOfDocument()] * 2, id="nothing helps"),
    ],
)
async def test_steps_that_cannot_be_right_are_dropped(replies: list[Any]) -> None:
    model = ScriptedModel(replies)
    assert await write_steps(model, TrainingQuestion(**ROW)) == []
    model.done()
