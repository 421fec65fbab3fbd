"""Questions written from documents: the second pass keeps those that a reader answers in the same way."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from scenes import Replying

from sleuth.agents.model import Request
from sleuth.graphs.core import Budget
from sleuth.studio.evaluation.data import read_questions
from sleuth.studio.evaluation.question_maker import (
    Kind,
    Made,
    QuestionPlan,
    WrittenQuestions,
    make_questions,
    plan_questions,
)
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

FILL = (
    "The wind is strong here for most of the year, and few people live on the rock; the tide covers the landing twice."
)
LIGHT = f"The Pellowrig Light was built by Bastian Oake on Ram Rock. {FILL}"
BUILDER = f"Bastian Oake was a mason who came from Sennick Harbour. {FILL}"
SINGLE = {"question": "Who built the Pellowrig Light?", "answer": "Bastian Oake", "quote": ""}
MULTI = {
    "first": "Who built the Pellowrig Light?",
    "second": "Where did Bastian Oake come from?",
    "answer": "Sennick Harbour",
    "question": "Where did the builder of the Pellowrig Light come from?",
}
MISSING = {"missing": "cost", "question": "What did the Pellowrig Light cost?"}
UNKNOWN = {"answerable": False, "answer": "", "citations": []}

Answer = Callable[[Request], Any]


def found(answer: str) -> dict[str, Any]:
    return {"answerable": True, "answer": answer, "citations": []}


def reader(request: Request) -> dict[str, Any]:
    """Answer like a careful reader of the sources in the prompt."""
    text, question = request.text(), request.input["question"]
    if question == SINGLE["question"]:
        return found("Bastian Oake") if LIGHT in text else UNKNOWN
    if question == MULTI["question"]:
        return found("Sennick Harbour") if LIGHT in text and BUILDER in text else UNKNOWN
    return UNKNOWN


def writing(read: Answer = reader, **replies: Mapping[str, Any]) -> Replying:
    """Return a model that writes these questions, and reads with `read`."""
    written = {"single": SINGLE, "multi": MULTI, "unanswerable": MISSING, **replies}
    return Replying(
        lambda request: read(request) if request.role == "reader" else written[request.prompt.split("/")[1]]
    )


@pytest.fixture
async def library(settings: Settings) -> AsyncIterator[Collection]:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as opened:
        await opened.put(
            [entry("light", LIGHT, title="Pellowrig Light"), entry("builder", BUILDER, title="Bastian Oake")]
        )
        yield opened


async def make(
    library: Collection, model: Replying, out: Path, counts: Mapping[Kind, int], budget: Budget | None = None
) -> list[Made]:
    plan = QuestionPlan(counts=counts, budget=budget or Budget(), concurrency=1)
    return [made async for made in make_questions(library, model, WrittenQuestions(out), plan)]


def reasons(made: list[Made]) -> set[str]:
    return {each.reason for each in made if each.row is None}


async def test_questions_of_each_kind_are_written_for_eval(library: Collection, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    counts: dict[Kind, int] = {"single": 1, "multi": 0, "unanswerable": 0}
    await make(library, writing(), out, counts)
    await make(library, writing(), out, {**counts, "multi": 1})
    await make(library, writing(), out, {"single": 1, "multi": 1, "unanswerable": 1})
    (file,) = read_questions([out])
    questions = {question.type: question for question in file.questions}
    (light,), (builder,) = [[each.id for each in await library.passages_of(name)] for name in ("light", "builder")]
    assert (questions["single"].answers, questions["single"].gold) == (("Bastian Oake",), (light,))
    assert questions["multi"].gold == (light, builder)
    steps = [(step.question, step.answer, step.gold_id) for step in questions["multi"].decomposition]
    assert steps == [(MULTI["first"], "Bastian Oake", light), (MULTI["second"], "Sennick Harbour", builder)]
    assert (questions["unanswerable"].answers, questions["unanswerable"].gold) == (("",), ())


@pytest.mark.parametrize(
    ("kind", "model", "reason"),
    [
        ("single", writing(lambda _: found("Edric Gannow")), "the second pass gives another answer"),
        ("single", writing(lambda _: UNKNOWN), "the second pass gives another answer"),
        ("single", writing(single={**SINGLE, "answer": "Ada Brask"}), "the answer is not in the passage"),
        ("single", writing(single={**SINGLE, "answer": "Pellowrig Light"}), "the question contains its answer"),
        ("single", writing(single={**SINGLE, "question": "Who is in the passage?"}), "without the passage"),
        ("single", writing(single={**SINGLE, "question": "Tell me all."}), "it is not one question"),
        ("single", writing(single={**SINGLE, "question": ""}), "is empty"),
        ("single", writing(single={"nonsense": 1}), "the model's reply cannot be used"),
        ("multi", writing(lambda _: found("Sennick Harbour")), "one passage alone answers it"),
        ("multi", writing(multi={**MULTI, "question": MULTI["second"]}), "contains the name"),
        ("multi", writing(lambda _: UNKNOWN), "the second pass gives another answer"),
        ("unanswerable", writing(lambda _: found("ten crowns")), "the documents answer it"),
    ],
)
async def test_question_that_fails_its_check_is_dropped_with_the_reason(
    library: Collection, tmp_path: Path, kind: Kind, model: Replying, reason: str
) -> None:
    made = await make(library, model, tmp_path / "q.jsonl", {kind: 2})
    assert any(reason in each for each in reasons(made)), reasons(made)
    assert not (tmp_path / "q.jsonl").exists()
    dropped = [json.loads(line) for line in (tmp_path / "q.dropped.jsonl").read_text().splitlines()]
    assert {each["reason"] for each in dropped} == reasons(made)


async def test_rerun_continues_after_a_kill(library: Collection, tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    await make(library, writing(), out, {"single": 1})
    out.write_text(out.read_text() + '{"id": "cut off')
    model = writing()
    assert await make(library, model, out, {"single": 1}) == []
    assert model.requests == []
    assert len(out.read_text().splitlines()) == 1


async def test_same_question_is_kept_once(library: Collection, tmp_path: Path) -> None:
    await library.put([entry("copy", LIGHT + " Again.", title="Copy")])
    made = await make(library, writing(), tmp_path / "q.jsonl", {"single": 3})
    assert sum(each.row is not None for each in made) == 1
    assert "the question was written before" in reasons(made)


async def test_budget_ends_the_writing(library: Collection, tmp_path: Path) -> None:
    model = writing()
    assert await make(library, model, tmp_path / "q.jsonl", {"single": 2}, Budget(max_calls=3)) == []
    assert model.requests == []


async def test_empty_collection_is_refused(settings: Settings, tmp_path: Path) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as empty:
        with pytest.raises(UsageError, match="no documents yet"):
            await make(empty, writing(), tmp_path / "q.jsonl", {"single": 1})


def test_file_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "questions.jsonl"
    other.write_text('{"question": "Who?"}\n')
    with pytest.raises(UsageError, match=r"line 1, was not made by this command.*--out"):
        WrittenQuestions(other)


def test_shares_give_the_numbers_of_each_kind() -> None:
    assert plan_questions(50, multi=0.4, unanswerable=0.2) == {"single": 20, "multi": 20, "unanswerable": 10}
    with pytest.raises(UsageError, match="more than 1"):
        plan_questions(50, multi=0.9, unanswerable=0.2)
