"""IRCoT: a sentence, a search, a sentence, and a reader at the end."""

from typing import Any

import pytest
from scenes import Case, Shelf, passage, resolves
from scripted_model import ScriptedModel

from sleuth.graphs.baselines import ircot
from sleuth.graphs.baselines.ircot import Settings
from sleuth.graphs.core.context import Budget

QUESTION = "Where was the builder of the tower born?"
FIRST, SECOND, LAST = "Oda Brell built the tower.", "Oda Brell was born in Varn.", "So the answer is: Varn."
TOWER = passage("tower", "The tower was built by Oda Brell.")
BRELL = passage("brell", "Oda Brell was born in Varn.")
READ: dict[str, Any] = {"reason": "", "citations": [{"source": 2, "quote": "born in Varn"}], "answer": "Varn"}
NO_ANSWER: dict[str, Any] = {"reason": "It is not told.", "citations": [], "answer": ""}


def thinking(*replies: Any, settings: Settings | None = None, **more: Any) -> Case:
    shelf = Shelf([TOWER], found={FIRST: [TOWER, BRELL]})
    return Case(ircot.graph, ScriptedModel(replies), shelf, settings or Settings(), **more)


async def test_ircot_sentences_are_queries_and_reader_answers() -> None:
    case = thinking(FIRST, SECOND, LAST, READ)
    verdict = await case.run(QUESTION)
    assert case.nodes == [*["retrieve", "reason"] * 3, "answer"]
    assert case.prompts() == [*["reasoner/think"] * 3, "reasoner/reason"]
    assert case.retriever.asked() == [(text, "graph", 4) for text in (QUESTION, FIRST, SECOND)]
    read = [[source["title"] for source in request.input["sources"]] for request in case.model.requests]
    assert read == [["Tower"], ["Tower", "Brell"], ["Tower", "Brell"], ["Tower", "Brell"]]
    assert case.model.requests[2].input["thoughts"] == (FIRST, SECOND)
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["passage"] for citation in verdict["citations"]] == ["brell"]
    assert all(resolves(citation, [TOWER, BRELL]) for citation in verdict["citations"])


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"{FIRST} {SECOND} {LAST}", FIRST),
        ("Dr. Brell built it [1]. She was born in Varn.", "Dr. Brell built it."),
        (f"  {FIRST}\n\nQuestion: ", FIRST),
    ],
)
async def test_ircot_keeps_first_sentence(said: str, kept: str) -> None:
    case = thinking(said, LAST, READ)
    await case.run(QUESTION)
    assert case.state["thoughts"] == [kept, LAST]


@pytest.mark.parametrize(
    "said", ["The answer is Varn", "So the final answer is: Varn.", "so the answer is: Varn (1868)."]
)
async def test_ircot_ends_at_sentence_with_answer(said: str) -> None:
    case = thinking(said, READ)
    await case.run(QUESTION)
    assert case.nodes == ["retrieve", "reason", "answer"]


async def test_ircot_ends_at_repeated_sentence() -> None:
    case = thinking(FIRST, FIRST, READ)
    assert (await case.run(QUESTION))["text"] == "Varn"
    assert case.state["thoughts"] == [FIRST]


async def test_ircot_steps_and_passages_are_bounded() -> None:
    case = thinking(FIRST, SECOND, NO_ANSWER, settings=Settings(max_steps=2, max_passages=1))
    assert (await case.run(QUESTION))["status"] == "unknown"
    assert case.nodes == [*["retrieve", "reason"] * 2, "answer"]
    assert [len(request.input["sources"]) for request in case.model.requests] == [1, 1, 1]


@pytest.mark.parametrize(("calls", "text"), [(0, ""), (1, ""), (2, ""), (3, "Varn")])
async def test_ircot_out_of_budget_answers_from_chain(calls: int, text: str) -> None:
    case = thinking(FIRST, SECOND, LAST, READ, budget=Budget(max_calls=calls))
    verdict = await case.run(QUESTION)
    assert (verdict["status"], verdict["text"], len(case.model.requests)) == ("out_of_budget", text, calls)
    assert [citation["passage"] for citation in verdict["citations"]] == (["brell"] if text else [])


async def test_ircot_without_reader_keeps_answer_of_chain() -> None:
    case = thinking(FIRST, SECOND, LAST, settings=Settings(reader=False))
    verdict = await case.run(QUESTION)
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["passage"] for citation in verdict["citations"]] == ["brell"]
    for said in (FIRST, "So the answer is: unknown."):
        unsure = thinking(FIRST, said, settings=Settings(reader=False))
        assert (await unsure.run(QUESTION))["status"] == "unknown"
