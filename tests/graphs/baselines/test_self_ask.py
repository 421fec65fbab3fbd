"""Self-Ask: follow-up questions, intermediate answers, and the end."""

from typing import Any

from scenes import Case, Shelf, passage, resolves
from scripted_model import ScriptedModel

from sleuth.graphs.baselines import self_ask
from sleuth.graphs.baselines.self_ask import Settings

QUESTION = "Where was the builder of the tower born?"
BUILDER, BIRTHPLACE = "Who built the tower?", "Where was Oda Brell born?"
TOWER = passage("tower", "The tower was built by Oda Brell.")
BRELL = passage("brell", "Oda Brell was born in Varn.")


def follow(question: str) -> dict[str, str]:
    return {"follow_up": "Yes", "question": question}


def final(answer: str) -> dict[str, str]:
    return {"follow_up": "No", "answer": answer}


def read(answer: str, quote: str = "", *, answerable: bool = True) -> dict[str, Any]:
    citations = [{"source": 1, "quote": quote}] if quote else []
    return {"answerable": answerable, "answer": answer, "citations": citations}


TWO_HOPS = [
    follow(BUILDER),
    read("Oda Brell", "built by Oda Brell"),
    follow(BIRTHPLACE),
    read("Varn", "born in Varn"),
    final("Varn"),
]


def asking(*replies: Any, settings: Settings | None = None, **more: Any) -> Case:
    shelf = Shelf([TOWER], found={BIRTHPLACE: [BRELL]})
    return Case(self_ask.graph, ScriptedModel(replies), shelf, settings or Settings(), **more)


async def test_self_ask_reads_each_follow_up_alone() -> None:
    case = asking(*TWO_HOPS)
    verdict = await case.run(QUESTION)
    assert case.nodes == [*["plan", "retrieve", "read"] * 2, "plan", "answer"]
    assert case.prompts() == [*["planner/follow_up", "reader/read"] * 2, "planner/follow_up"]
    assert case.retriever.asked() == [(BUILDER, "graph", 5), (BIRTHPLACE, "graph", 5)]
    assert case.retriever.queries[1].entities == ("Oda Brell",)
    second = case.model.requests[3].input
    assert [source["title"] for source in second["sources"]] == ["Brell"]
    assert second["known"] == ()
    assert case.model.requests[4].input["known"] == (
        {"question": BUILDER, "answer": "Oda Brell"},
        {"question": BIRTHPLACE, "answer": "Varn"},
    )
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower", "brell"]
    assert all(resolves(citation, [TOWER, BRELL]) for citation in verdict["citations"])
    assert list(case.state["notes"]) == ["follow-up 1", "follow-up 2", "answer"]


async def test_self_ask_continues_without_intermediate_answer() -> None:
    case = asking(follow(BUILDER), read("Oda", answerable=False), final(""))
    assert (await case.run(QUESTION))["status"] == "unknown"
    assert case.model.requests[2].input["known"] == ({"question": BUILDER, "answer": "not found"},)


async def test_self_ask_repeats_no_question() -> None:
    case = asking(follow(BUILDER), read("Oda Brell"), follow(BUILDER.upper()), {"known": True, "answer": "Varn"})
    assert (await case.run(QUESTION))["text"] == "Varn"
    assert case.prompts()[-1] == "answerer/answer"
    assert any("asked again" in warning for warning in case.state["warnings"])
    assert len(case.retriever.queries) == 1


async def test_self_ask_follow_ups_are_bounded() -> None:
    case = asking(*TWO_HOPS[:2], {"known": True, "answer": "Varn"}, settings=Settings(max_follow_ups=1))
    assert (await case.run(QUESTION))["status"] == "answered"
    assert case.nodes == ["plan", "retrieve", "read", "plan", "answer"]
    assert case.prompts()[-1] == "answerer/answer"


async def test_self_ask_with_sub_answer_searches_question() -> None:
    known = {"question": BIRTHPLACE, "finding": "Varn", "passages": [], "citations": []}
    case = asking(follow(BIRTHPLACE), read("Varn"), final("Varn"))
    assert (await case.run(QUESTION, {"1": known}))["text"] == "Varn"  # type: ignore[dict-item]
    assert [query.text for query in case.retriever.queries] == [QUESTION]
