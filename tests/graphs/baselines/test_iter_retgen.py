"""Iter-RetGen: searches with what was generated, a fixed number of times."""

from typing import Any

import pytest
from scenes import Case, Shelf, passage, resolves
from scripted_model import ScriptedModel

from sleuth.graphs.baselines import iter_retgen
from sleuth.graphs.baselines.iter_retgen import Settings
from sleuth.graphs.core.context import Budget

QUESTION = "Which town has the tower's builder left?"
TOWER = passage("tower", "The tower was built by Oda Brell.")
BRELL = passage("brell", "Oda Brell left Varn as a child.")

FIRST: dict[str, Any] = {"reason": "Oda Brell built the tower; her towns are not told.", "citations": [], "answer": ""}
THEN: dict[str, Any] = {
    "reason": "Oda Brell left Varn.",
    "citations": [{"source": 1, "quote": "left Varn"}],
    "answer": "Varn",
}


def iterating(*replies: Any, settings: Settings | None = None, **more: Any) -> Case:
    shelf = Shelf([TOWER], found={f"{FIRST['reason']} {QUESTION}": [BRELL]})
    return Case(iter_retgen.graph, ScriptedModel(replies), shelf, settings or Settings(iterations=2), **more)


async def test_iter_retgen_searches_with_its_generation() -> None:
    case = iterating(FIRST, THEN)
    verdict = await case.run(QUESTION)
    assert case.nodes == ["retrieve", "answer"] * 2
    assert case.prompts() == ["reasoner/reason"] * 2
    assert case.retriever.asked() == [(QUESTION, "graph", 5), (f"{FIRST['reason']} {QUESTION}", "graph", 5)]
    read = [[source["title"] for source in request.input["sources"]] for request in case.model.requests]
    assert read == [["Tower"], ["Brell"]]
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["quote"] for citation in verdict["citations"]] == ["left Varn"]
    assert all(resolves(citation, [BRELL]) for citation in verdict["citations"])


async def test_iter_retgen_last_generation_is_final() -> None:
    case = iterating(THEN, FIRST)
    assert (await case.run(QUESTION))["status"] == "unknown"
    assert case.state["attempts"]["1"]["answer"] == "Varn"
    assert case.retriever.queries[1].text == f"{THEN['reason']} Varn {QUESTION}"


@pytest.mark.parametrize(("calls", "text"), [(0, ""), (1, "Varn"), (2, "Varn")])
async def test_iter_retgen_out_of_budget_returns_latest_answer(calls: int, text: str) -> None:
    case = iterating(*[THEN] * 3, settings=Settings(iterations=3), budget=Budget(max_calls=calls))
    case.retriever.passages = [BRELL]
    verdict = await case.run(QUESTION)
    assert (verdict["status"], verdict["text"], len(case.model.requests)) == ("out_of_budget", text, calls)
    assert len(verdict["citations"]) == min(calls, 1)
