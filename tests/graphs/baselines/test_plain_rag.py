"""Plain RAG: one search, one reading."""

import json
from typing import Any

import pytest
from scenes import example, passage, plain, resolves

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high.")


def reading(answer: str, *quotes: tuple[int, str], answerable: bool = True) -> dict[str, Any]:
    citations = [{"source": source, "quote": quote} for source, quote in quotes]
    return {"answerable": answerable, "answer": answer, "citations": citations}


async def test_plain_rag_searches_and_reads_once() -> None:
    chain = example("q01")
    case = plain([reading("812 metres", (1, "known: 812 metres"))], chain.passages)
    verdict = await case.run(chain.question)
    assert case.nodes == ["retrieve", "answer"]
    assert case.prompts() == ["reader/read"]
    assert case.retriever.asked() == [(chain.question, "graph", 5)]
    assert (verdict["status"], verdict["text"]) == ("answered", "812 metres")
    assert len(verdict["citations"]) == 1
    assert all(resolves(citation, chain.passages) for citation in verdict["citations"])
    assert case.state["notes"]["answer"]["passages"] == ["q01-1"]


async def test_plain_rag_search_is_recorded_with_scores() -> None:
    case = plain([reading("30 m", (1, "It is 30 m high"))], [TOWER])
    await case.run("How high is the tower?")
    [record] = await case.archive.load(case.state["searches"])
    search = json.loads(record)
    assert (search["query"], search["mode"]) == ("How high is the tower?", "graph")
    [hit] = search["hits"]
    assert [hit["passage"]] == case.state["evidence"]
    assert hit["score"] > 0


@pytest.mark.parametrize("said", [reading("30 m", answerable=False), reading(" [1] ")])
async def test_plain_rag_may_not_know(said: dict[str, Any]) -> None:
    case = plain([said], [TOWER])
    assert await case.run("?") == {"status": "unknown", "text": "I found no answer.", "citations": []}
    assert case.state["notes"] == {}


async def test_plain_rag_inherited_sub_answer_is_read_with_passages() -> None:
    known = {"question": "Where?", "finding": "Varn", "passages": []}
    case = plain([reading("30 m")], [TOWER])
    await case.run("How high is it there?", {"1": known})  # type: ignore[dict-item]
    assert case.nodes == ["retrieve", "answer"]
    assert case.retriever.queries[0].entities == ("Varn",)
    assert case.model.requests[0].input["known"] == ({"question": "Where?", "answer": "Varn"},)
