"""Questions written from documents: the second pass keeps those that a reader answers in the same way."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder
from scenes import Replying

from sleuth.agents.model import Request
from sleuth.graphs.core.context import Budget
from sleuth.studio.evaluation.data import read_questions
from sleuth.studio.evaluation.question_maker import (
    Kind,
    Row,
    make_questions,
    plan_questions,
    read_made,
)
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelUnavailable, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
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
        await Ingestion(opened).put(
            [entry("light", LIGHT, title="Pellowrig Light"), entry("builder", BUILDER, title="Bastian Oake")]
        )
        yield opened


async def make(library: Collection, model: Replying, out: Path, counts: Mapping[Kind, int]) -> list[Row]:
    return [made async for made in make_questions(library, model, out, counts, concurrency=1)]


def reasons(made: list[Row]) -> set[str]:
    return {each["reason"] for each in made if "reason" in each}


async def test_questions_of_each_kind_are_written_for_eval(library: Collection, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
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
        ("single", writing(single={**SINGLE, "answer": "Ada Brask"}), "the answer is not in the passage"),
        ("single", writing(single={**SINGLE, "answer": "Pellowrig Light"}), "the question contains its answer"),
        ("single", writing(single={**SINGLE, "question": "Who is in the passage?"}), "without the passage"),
        ("single", writing(single={**SINGLE, "question": "Tell me all."}), "it is not one question"),
        ("single", writing(single={**SINGLE, "question": ""}), "is empty"),
        ("single", writing(single={"nonsense": 1}), "the model's reply cannot be used"),
        ("multi", writing(lambda _: found("Sennick Harbour")), "one passage alone answers it"),
        ("multi", writing(multi={**MULTI, "question": MULTI["second"]}), "contains the name"),
        ("multi", writing(multi={**MULTI, "answer": "Bastian Oake"}), "the answer is the name"),
        ("unanswerable", writing(lambda _: found("ten crowns")), "the documents answer it"),
    ],
)
async def test_question_that_fails_its_check_is_dropped_with_the_reason(
    library: Collection, tmp_path: Path, kind: Kind, model: Replying, reason: str
) -> None:
    made = await make(library, model, tmp_path / "q.jsonl", {kind: 2})
    assert any(reason in each for each in reasons(made)), reasons(made)
    assert not (tmp_path / "q.jsonl").exists()


@pytest.mark.parametrize("size", [1, 22, 80])
async def test_rerun_continues_after_a_kill(library: Collection, tmp_path: Path, size: int) -> None:
    out = tmp_path / "q.jsonl"
    await make(library, writing(), out, {"single": 1})
    kept = out.read_bytes()
    row = '{"id": "single-12345678", "question": "ß\u2028?", "answer": "Ägir", "made_from": "single+b"}'
    out.write_bytes(kept + row.encode()[:size])
    model = writing()
    assert await make(library, model, out, {"single": 1}) == []
    assert model.requests == []
    assert out.read_bytes() == kept


async def test_same_question_is_kept_once(library: Collection, tmp_path: Path) -> None:
    await Ingestion(library).put([entry("copy", LIGHT + " Again.", title="Copy")])
    made = await make(library, writing(), tmp_path / "q.jsonl", {"single": 3})
    assert len(made) - len([each for each in made if "reason" in each]) == 1
    assert "the question was written before" in reasons(made)


async def test_empty_collection_is_refused(settings: Settings, tmp_path: Path) -> None:
    async with await Collection.open(settings, embedder=HashingEmbedder()) as empty:
        with pytest.raises(UsageError, match="no documents yet"):
            await make(empty, writing(), tmp_path / "q.jsonl", {"single": 1})


@pytest.mark.parametrize("text", ['{"question": "Who?"}\n', '{"question": "Who?"}\nnotes', "not JSON"])
def test_file_of_something_else_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    other = tmp_path / "questions.jsonl"
    other.write_text(text)
    with pytest.raises(UsageError, match=r"(was not made by this command|cannot be read).*--out"):
        read_made(other)
    assert other.read_text() == text


def test_unreadable_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read.*--out"):
        read_made(tmp_path)


async def test_kind_that_always_fails_leaves_the_others_complete(library: Collection, tmp_path: Path) -> None:
    def read(request: Request) -> dict[str, Any]:
        return found("ten crowns") if request.input["question"] == MISSING["question"] else reader(request)

    counts: dict[Kind, int] = {"single": 1, "multi": 1, "unanswerable": 5}
    made = await make(library, writing(read), tmp_path / "new" / "q.jsonl", counts)
    assert [row["type"] for row in made if "type" in row] == ["single", "multi"]


async def test_budget_and_failed_checks_end_the_search(library: Collection, tmp_path: Path) -> None:
    await Ingestion(library).put([entry(f"copy{n}", f"{LIGHT} Copy {n}.", title=f"Copy {n}") for n in range(12)])
    out, model, one = tmp_path / "q.jsonl", writing(), Budget(max_calls=1)
    assert [made async for made in make_questions(library, model, out, {"single": 1}, budget=one, concurrency=1)] == []
    assert len(model.requests) == 1
    failing = writing(lambda _: UNKNOWN)
    assert len(await make(library, failing, out, {"single": 1})) == 10
    assert not out.exists()


async def test_single_question_is_written_from_one_telling_sentence(library: Collection, tmp_path: Path) -> None:
    model = writing()
    await make(library, model, tmp_path / "q.jsonl", {"single": 1})
    shown = [request.text() for request in model.requests if request.prompt == "questioner/single"]
    assert shown
    assert all(FILL not in text for text in shown)
    assert any("built by Bastian Oake on Ram Rock." in text for text in shown)


async def test_question_that_search_does_not_connect_is_dropped(library: Collection, tmp_path: Path) -> None:
    text = (
        "Zorbax zorbax zorbax engine number {} of Zorbax was shown. " + "More zorbax is to be seen there each day. " * 3
    )
    await Ingestion(library).put([entry(f"z{n}", text.format(n), title=f"Zorbax {n}") for n in range(9)])
    asked = {**SINGLE, "question": "Where is zorbax zorbax zorbax engine zorbax?"}
    made = await make(library, writing(single=asked), tmp_path / "q.jsonl", {"single": 1})
    assert "search does not find the passage by the question" in reasons(made)


async def test_unreachable_model_keeps_the_questions_so_far(library: Collection, tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    await make(library, writing(), out, {"single": 1})
    kept = out.read_text()
    await Ingestion(library).put([entry("copy", LIGHT + " Again.", title="Copy")])
    with pytest.raises(ModelUnavailable, match="no server"):
        await make(library, Replying(lambda _: ModelUnavailable("no server")), out, {"single": 2})
    assert out.read_text() == kept


async def test_same_seed_chooses_the_same_passages(library: Collection, tmp_path: Path) -> None:
    await Ingestion(library).put([entry(f"copy{n}", f"{LIGHT} Copy {n}.", title=f"Copy {n}") for n in range(12)])
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        model = writing(lambda _: UNKNOWN)
        making = make_questions(library, model, tmp_path / name, {"single": 1}, seed=seed, concurrency=1)
        orders.append([made["candidate"] async for made in making])
    assert orders[0] == orders[1] != orders[2]


def test_shares_give_the_numbers_of_each_kind() -> None:
    assert plan_questions(50, multi=0.4, unanswerable=0.2) == {"single": 20, "multi": 20, "unanswerable": 10}
    with pytest.raises(UsageError, match="more than 1"):
        plan_questions(50, multi=0.9, unanswerable=0.2)
