"""reader: answers, follows, refuses, resumes and forks without a model."""

from dataclasses import replace
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from scenes import Case, Replying, Shelf, finish, passage
from scripted_checker import ScriptedChecker

from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.context import Services
from sleuth.graphs.methods.reader import graph as reader
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.evidence_checker.checker import SupportFit
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Hit

QUESTION = "Where does the tower of Oda Brell stand?"
ODA = passage("oda", "Oda Brell was a builder. She built the Tower in 1861.")
TOWER = passage("tower", "The tower stands in Varn. It is high.")
TWO_SEARCHES = {f"{QUESTION} Oda": [TOWER]}


def silent(request: Any) -> Any:
    return pytest.fail(f"a model was asked: {request.prompt}")


def case_of(found: dict[str, Any] | None = None, **values: Any) -> Case:
    shelf = Shelf([ODA] if found is not None else [ODA, TOWER], found=found or {})
    return Case(reader.graph, Replying(silent), shelf, reader.Settings(**values))


class Bridged(ScriptedChecker):
    """A checker for which the passage that names another one is relevant too."""

    def read(self, question: str, passages: Any) -> Any:
        reading = super().read(question, passages)
        relevance = tuple(max(each, 0.6 * ("Tower" in passages[at].text)) for at, each in enumerate(reading.relevance))
        return replace(reading, relevance=relevance)


async def test_supported_answer_takes_one_search_and_cites_both_passages() -> None:
    case = case_of()
    verdict = await case.run(QUESTION, checker=Bridged())
    assert case.nodes == ["retrieve", "read", "answer"]
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert verdict["support"] == {
        "score": pytest.approx(SupportFit().probability(0.9, 0.9 * 0.95), abs=1e-4),
        "answerable": 0.9,
    }
    quotes = [(citation["passage"], citation["quote"]) for citation in verdict["citations"]]
    assert quotes == [("oda", "She built the Tower in 1861."), ("tower", "The tower stands in Varn.")]
    assert [note["finding"] for note in case.state["notes"].values()] == ["Varn"]


async def test_search_continues_from_the_most_relevant_passage() -> None:
    case = case_of(TWO_SEARCHES)
    verdict = await case.run(QUESTION, checker=Bridged())
    assert case.nodes == ["retrieve", "read", "follow", "read", "answer"]
    assert verdict["text"] == "Varn"
    second = case.retriever.queries[1]
    assert (second.text, second.hop, second.entities, second.seen) == (f"{QUESTION} Oda", True, ("Oda",), {"oda"})


async def test_answer_with_most_support_counts() -> None:
    class Doubting(ScriptedChecker):
        def read(self, question: str, passages: Any) -> Any:
            reading = super().read(question, passages)
            spans = reading.spans if len(passages) == 1 else (replace(reading.spans[0], text="Isk"),)
            return replace(reading, answerable=0.5 / len(passages), spans=spans)

    case = Case(reader.graph, Replying(silent), Shelf([TOWER], found={f"{QUESTION} Tower": [ODA]}), reader.Settings())
    verdict = await case.run(QUESTION, checker=Doubting())
    assert case.nodes == ["retrieve", "read", "follow", "read", "answer"]
    support = SupportFit().probability(0.5, 0.9 * 0.95)
    assert (verdict["text"], verdict["support"]["score"]) == ("Varn", pytest.approx(support, abs=1e-4))


@pytest.mark.parametrize(("most", "searches"), [(1, 1), (3, 3)])
async def test_searches_end_after_the_last_hop(most: int, searches: int) -> None:
    case = case_of({}, max_searches=most)
    verdict = await case.run(QUESTION, checker=ScriptedChecker())
    assert len(case.retriever.queries) == searches
    assert verdict["status"] == "unknown"
    assert verdict["citations"] == []
    assert verdict["text"].startswith("I found no answer.")
    assert not case.state["notes"]


@pytest.mark.parametrize(
    ("answerable", "status", "weak"), [(0.9, "answered", False), (0.5, "answered", True), (0.05, "unknown", False)]
)
async def test_support_decides_what_becomes_of_the_answer(answerable: float, status: str, weak: bool) -> None:
    case = case_of()
    verdict = await case.run(QUESTION, checker=ScriptedChecker(answerable=answerable))
    assert (verdict["status"], verdict["support"].get("weak", False)) == (status, weak)


async def test_yes_or_no_cites_the_closest_sentences() -> None:
    class Agreeing(ScriptedChecker):
        def read(self, question: str, passages: Any) -> Any:
            return replace(super().read(question, passages), yes=0.9, no=0.05)

    case = case_of()
    verdict = await case.run("Did Oda Brell build a tower that stands in Varn?", checker=Agreeing())
    assert verdict["text"] == "yes"
    assert [citation["quote"] for citation in verdict["citations"]] == [
        "The tower stands in Varn.",
        "Oda Brell was a builder.",
    ]


MILL, FERRY = passage("mill", "The mill was built in 1911."), passage("ferry", "The ferry was built in May 1904.")
WHICH = "Which was built first, the mill or the ferry?"


class Dating(ScriptedChecker):
    """A checker that reads the date of what a question names."""

    def read(self, question: str, passages: Any) -> Any:
        self.answer, self.evidence = ("1911", "mill") if "mill" in question else ("May 1904", "ferry")
        return super().read(question, passages)


async def test_comparison_of_dates_is_answered_from_the_date_of_each() -> None:
    case = Case(reader.graph, Replying(silent), Shelf([MILL, FERRY]), reader.Settings())
    verdict = await case.run(WHICH, checker=Dating())
    assert case.nodes == ["retrieve", "compare", "answer"]
    assert (verdict["status"], verdict["text"]) == ("answered", "the ferry")
    assert [query.text for query in case.retriever.queries[1:]] == [
        "When was the mill built?",
        "When was the ferry built?",
    ]
    assert [citation["passage"] for citation in verdict["citations"]] == ["mill", "ferry"]
    assert verdict["support"]["score"] == pytest.approx(SupportFit().probability(0.9, 0.9 * 0.95), abs=1e-4)


async def test_comparison_without_both_dates_is_read_like_other_questions() -> None:
    case = Case(reader.graph, Replying(silent), Shelf([MILL]), reader.Settings(max_searches=1))
    await case.run(WHICH, checker=ScriptedChecker(answer="1911", evidence="mill"))
    assert case.nodes == ["retrieve", "compare", "read", "answer"]


async def test_nothing_found_is_unknown() -> None:
    case = Case(reader.graph, Replying(silent), Shelf([]), reader.Settings())
    verdict = await case.run(QUESTION, checker=ScriptedChecker())
    assert (verdict["status"], case.nodes) == ("unknown", ["retrieve", "read", "answer"])


class DownOnce(Shelf):
    """A shelf whose second search fails once."""

    failed = False

    async def search(self, query: Query) -> list[Hit]:
        if query.hop and not self.failed:
            self.failed = True
            raise StoreError("It is down.")
        return await super().search(query)


async def test_run_that_failed_is_resumed_at_the_failed_step() -> None:
    case = case_of(TWO_SEARCHES)
    case.retriever = DownOnce([ODA], found=TWO_SEARCHES)
    with pytest.raises(StoreError):
        await case.run(QUESTION, checker=Bridged())
    assert (await case.run(QUESTION, checker=Bridged()))["text"] == "Varn"
    assert case.nodes == ["retrieve", "read", "follow", "follow", "read", "answer"]


async def test_run_without_a_checker_is_refused_at_the_start(store: Store) -> None:
    runs = RunService(store, Services(model=Replying(silent), retriever=Shelf([ODA]), embedder=HashingEmbedder()))
    with pytest.raises(UsageError, match="SLEUTH_CHECKER"):
        await runs.start(RunRequest(question=QUESTION, method="reader"))


async def test_fork_reads_again_with_what_is_known(store: Store) -> None:
    shelf = Shelf([ODA], found=TWO_SEARCHES)
    services = Services(model=Replying(silent), retriever=shelf, embedder=HashingEmbedder(), checker=ScriptedChecker())
    runs = RunService(store, services)
    id = await runs.start(RunRequest(question=QUESTION, method="reader"))
    assert (await finish(runs, id)).text == "Varn"
    first = next(moment for moment in await list_checkpoints(runs, id) if moment.node == ["retrieve"])
    known: Note = {"question": "Who built it?", "finding": "Oda Brell", "passages": []}
    forked = await fork_run(runs, id, at=first.checkpoint, into="reader", changes={"notes": {"own": known}}, name="two")
    assert forked["thread"] == "two"
    assert (await finish(runs, "two")).text == "Varn"
    assert [query.hop for query in shelf.queries] == [False, True, True]
