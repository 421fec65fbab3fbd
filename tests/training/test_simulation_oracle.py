import pytest
from contracts import Folder
from entries import entry
from scenes import Shelf

from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.roles.planning import SearchResult
from sleuth.agents.roles.searching import SEARCH_R1, Transcript
from sleuth.studio.evaluation.gold import shown_gold
from sleuth.tools.errors import UnknownName
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Passage
from training.simulation.players import OracleRetriever, oracle_parts


def passages(ids: str) -> list[Passage]:
    return [entry(id, f"What {id} tells.").passages[0] for id in ids]


@pytest.mark.parametrize(
    ("found", "gold", "k", "then"),
    [
        ("abc", "", 3, "abc"),
        ("abc", "b", 3, "abc"),
        ("abc", "x", 3, "abx"),
        ("abc", "xy", 3, "axy"),
        ("abc", "wxyz", 3, "wxy"),
        ("", "x", 3, "x"),
    ],
)
async def test_gold_takes_the_places_of_the_last(found: str, gold: str, k: int, then: str) -> None:
    hits = await OracleRetriever(retriever=Shelf(passages(found)), gold=passages(gold)).search(Query(text="?", k=k))
    assert [hit.passage for hit in hits] == passages(then)
    assert [hit.rank for hit in hits] == list(range(1, len(then) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_gold_in_the_transcript_of_a_trained_model_counts_as_shown() -> None:
    title, text = "Mercury (planet)", "Mercury is hot.\nIt is small."
    sources = (
        SearchResult(title="Venus", text="It is bright.", search=1),
        SearchResult(title=title, text=text, search=1),
    )
    given = Transcript(
        question="?", known=(), written=("<search>x</search>",), searches=("x",), sources=sources, last=False
    )
    prompt = "\n".join(message["content"] for message in render_messages(SEARCH_R1, given))
    gold = {"m": (title, text), "v": ("Venus", "Another text."), "e": ("Earth", "It is blue.")}
    assert shown_gold(gold, [prompt]) == ["m"]


async def test_documents_are_read_as_far_as_the_search_can() -> None:
    (passage,) = passages("b")
    reading = OracleRetriever(retriever=Folder(passages("abc")), gold=[])
    assert await reading.passages_of(passage.document_id) == [passage]
    assert await OracleRetriever(retriever=Shelf(passages("abc")), gold=[]).passages_of(passage.document_id) == []


def test_parts_are_roles_and_passages() -> None:
    assert oracle_parts(["reader", "passages", "reader", "drafter"]) == ("drafter", "reader", "passages")
    with pytest.raises(UnknownName, match=r"There is no part 'planer'\. Did you mean planner"):
        oracle_parts(["planer"])
