"""Agent: a model that calls the search tool until it answers."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from scenes import Case, Shelf, passage, resolves
from scripted_model import ScriptedModel

from sleuth.graphs.baselines import react as agent
from sleuth.graphs.baselines.react import Settings
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Passage

QUESTION = "Where was the builder of the tower born?"
TOWER = passage("tower", "The tower was built by Oda Brell.")
BRELL = passage("brell", "Oda Brell was born in Varn.")
FOUND = {"tower": [TOWER], "Oda Brell": [TOWER, BRELL]}


def search(query: str) -> dict[str, str]:
    return {"action": "search", "query": query}


def answer(text: str, *quotes: tuple[int, str]) -> dict[str, Any]:
    citations = [{"source": source, "quote": quote} for source, quote in quotes]
    return {"action": "answer", "answer": text, "citations": citations}


VARN = answer("Varn", (1, "built by Oda Brell"), (2, "born in Varn"))
READ = {"reason": "", "citations": [], "answer": "Varn"}


def acting(*replies: Any, settings: Settings | None = None, **more: Any) -> Case:
    return Case(agent.graph, ScriptedModel(replies), Shelf([], FOUND), settings or Settings(), **more)


async def test_react_searches_until_it_answers() -> None:
    case = acting(search("tower"), search("Oda Brell"), VARN)
    verdict = await case.run(QUESTION)
    assert case.nodes == [*["act", "retrieve"] * 2, "act", "answer"]
    assert case.prompts() == ["actor/act"] * 3
    assert case.retriever.asked() == [("tower", "graph", 5), ("Oda Brell", "graph", 5)]
    shown = case.model.requests[2].input
    assert [(source["title"], source["search"]) for source in shown["sources"]] == [("Tower", 1), ("Brell", 2)]
    prompt = case.model.requests[2].text()
    assert prompt.index("Search 1: tower") < prompt.index("<source 1>\nTower") < prompt.index("Search 2: Oda Brell")
    assert prompt.index("Search 2: Oda Brell") < prompt.index("<source 2>\nBrell")
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower", "brell"]
    assert all(resolves(citation, [TOWER, BRELL]) for citation in verdict["citations"])


async def test_react_prompts_extend_each_other() -> None:
    case = acting(search("tower"), search("Oda Brell"), search("nothing"), VARN)
    await case.run(QUESTION)
    _, second, third, last = (request.text() for request in case.model.requests)
    assert last.startswith(third)
    assert third.startswith(second)
    assert last.endswith("Search 3: nothing\n(nothing new)")


class ToolCalling(GenericFakeChatModel):
    """A model with tool calls and given replies."""

    def bind_tools(self, *_: object, **__: object) -> "ToolCalling":
        return self


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
@pytest.mark.parametrize("queries", [[], ["tower"], ["tower", "Oda Brell"], ["a", "b", "c", "d"]])
async def test_react_matches_prebuilt_agent(queries: list[str]) -> None:
    from langgraph.prebuilt import create_react_agent

    ours, shelf = acting(*map(search, queries), VARN), Shelf([], FOUND)

    async def search_documents(query: str) -> str:
        """Find passages."""
        return "\n".join(hit.passage.text for hit in await shelf.search(Query(text=query, k=5, mode="graph")))

    calls = [ToolCall(name="search_documents", args={"query": query}, id=query) for query in queries]
    says = [*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage("Varn")]
    prebuilt, nodes, last = create_react_agent(ToolCalling(messages=iter(says)), [search_documents]), [], None
    async for update in prebuilt.astream({"messages": [("user", QUESTION)]}, stream_mode="updates"):
        nodes += [{"agent": "act", "tools": "retrieve"}[name] for name in update]
        last = [*update.values()][-1]["messages"][-1]
    verdict = await ours.run(QUESTION)
    assert ours.nodes == [*nodes, "answer"]
    assert [query.text for query in ours.retriever.queries] == [query.text for query in shelf.queries] == queries
    assert last is not None
    assert verdict["text"] == last.content


async def test_react_repeated_search_ends_searching() -> None:
    case = acting(search("tower"), search(" TOWER"), READ)
    assert (await case.run(QUESTION))["text"] == "Varn"
    assert case.prompts()[-1] == "reasoner/reason"
    assert any("searched again" in warning for warning in case.state["warnings"])
    assert len(case.retriever.queries) == 1


async def test_react_answers_after_last_search() -> None:
    case = acting(search("tower"), READ, settings=Settings(max_searches=1))
    assert (await case.run(QUESTION))["status"] == "answered"
    assert case.nodes == ["act", "retrieve", "act", "answer"]


@pytest.mark.parametrize("said", [answer(""), answer(" [1] ")])
async def test_react_may_not_know(said: dict[str, Any]) -> None:
    case = acting(search("tower"), said)
    assert await case.run(QUESTION) == {"status": "unknown", "text": "I found no answer.", "citations": []}


DOCUMENT = [
    replace(passage(f"doc-{at}", text, at=100 * at), document_id="doc", title="Chronicle")
    for at, text in enumerate(("Before.", "Oda Brell built the tower.", "She was born in Varn.", "After.", "The end."))
]


@dataclass
class Library(Shelf):
    """A shelf that can read the document."""

    async def passages_of(self, document_id: str) -> list[Passage]:
        return [each for each in DOCUMENT if each.document_id == document_id]


def with_tools(*replies: Any, shelf: Shelf | None = None, **values: Any) -> Case:
    found = {"builder tower": [DOCUMENT[1]], "Who built the tower?": [DOCUMENT[1]]}
    chosen = Settings(tools="three", **values)
    return Case(agent.graph, ScriptedModel(replies), shelf or Library([], found), chosen)


def tool(action: str, query: str) -> dict[str, str]:
    return {"action": action, "query": query}


READ_ON = {"action": "read", "source": 1}


async def test_three_tools_search_by_words_by_meaning_and_read_on() -> None:
    case = with_tools(
        tool("semantic", "Who built the tower?"),
        tool("keyword", "builder tower"),
        READ_ON,
        answer("Varn", (1, "Oda Brell built"), (3, "born in Varn")),
    )
    verdict = await case.run(QUESTION)
    assert case.prompts() == ["actor/act_with_tools"] * 4
    assert case.retriever.asked() == [("Who built the tower?", "graph", 5), ("builder tower", "keyword", 5)]
    last = case.model.requests[-1]
    steps = ("semantic: Who built the tower?", "keyword: builder tower", "read: Chronicle [1]")
    assert last.input["searches"] == steps
    assert [source["text"] for source in last.input["sources"]] == [DOCUMENT[at].text for at in (1, 0, 2)]
    assert [cited["passage"] for cited in verdict["citations"]] == ["doc-1", "doc-2"]
    assert all(resolves(cited, DOCUMENT) for cited in verdict["citations"])


async def test_reading_on_reaches_as_far_as_set() -> None:
    case = with_tools(tool("semantic", "Who built the tower?"), READ_ON, VARN, reach=3, mode="hybrid")
    await case.run(QUESTION)
    assert [source["text"] for source in case.model.requests[-1].input["sources"]] == [
        DOCUMENT[at].text for at in (1, 0, 2, 3, 4)
    ]
    assert case.retriever.asked() == [("Who built the tower?", "hybrid", 5)]


@pytest.mark.parametrize(
    ("steps", "rounds", "why"),
    [
        ([tool("semantic", "builder tower"), READ_ON, READ_ON], 3, "searched again for 'read: Chronicle [1]'"),
        ([{"action": "read", "source": 9}], 1, "a source that was not shown"),
    ],
)
async def test_repeated_step_or_unknown_source_ends_the_loop(steps: list[Any], rounds: int, why: str) -> None:
    case = with_tools(tool("keyword", "builder tower"), *steps, READ)
    assert (await case.run(QUESTION))["text"] == "Varn"
    assert len(case.state["rounds"]) == rounds
    assert any(why in warning for warning in case.state["warnings"])


@pytest.mark.parametrize(
    ("kind", "why"), [(Shelf, "the passages around one cannot be read"), (Library, "is no longer in the collection")]
)
async def test_reading_on_without_the_document_warns(kind: type[Shelf], why: str) -> None:
    case = with_tools(tool("keyword", "tower"), READ_ON, answer("Oda Brell"), shelf=kind([TOWER]))
    assert (await case.run(QUESTION))["text"] == "Oda Brell"
    assert any(why in warning for warning in case.state["warnings"])


@pytest.mark.parametrize("said", [{"action": "read"}, {"action": "keyword", "query": " "}])
async def test_step_without_its_argument_is_repaired(said: dict[str, Any]) -> None:
    case = with_tools(said, answer("Varn"))
    await case.run(QUESTION)
    assert "needs" in case.model.requests[1].text()
