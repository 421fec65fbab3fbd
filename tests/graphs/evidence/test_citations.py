"""Where a citation stands, and what becomes of one that stands nowhere."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import passage, resolves

from sleuth.agents.formatting import Quote
from sleuth.agents.llm.testing import ScriptedModel
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.answer import Citation, Status
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.state import Question
from sleuth.graphs.evidence.citations import check, cited, saying, support
from sleuth.graphs.evidence.outcomes import conclude, known_steps, note
from sleuth.graphs.evidence.retrieval import as_query, find, load, names_in, sources
from sleuth.graphs.evidence.text_spans import clean, locate, sentence_with
from sleuth.tools.search.retriever import Query
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Explanation, Hit, Reason

TEXT = "Varn lies on the Oss.\nIts mayor is Dr. Lena Holt! She was  born\nin 1861 (so they say)."
TOWN = passage("town", TEXT)


def desk() -> ModelCaller:
    return ModelCaller(ScriptedModel(), MemoryArchive(), seed="")


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("Its mayor", "Its mayor"),
        ("  'its MAYOR is' ", "Its mayor is"),
        ("“She was born in 1861”", "She was  born\nin 1861"),
        ("(so they say).", "(so they say)."),
        ("Varn  Oss", None),
        ("", None),
        ('" "', None),
    ],
)
def test_a_quote_is_found_whatever_its_case_and_white_space(quote: str, found: str | None) -> None:
    span = locate(quote, TEXT)
    assert (TEXT[slice(*span)] if span else None) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("varn", "Varn lies on the Oss."),
        ("the Oss. [1, 2]", "Varn lies on the Oss."),
        ("1861", "in 1861 (so they say)."),
        ("Lena Holt", "Lena Holt!"),
        ("186", None),
        ("arn", None),
        ("[1]", None),
    ],
)
def test_the_sentence_or_line_around_an_answer_is_found(answer: str, found: str | None) -> None:
    span = sentence_with(answer, TEXT)
    assert (TEXT[slice(*span)] if span else None) == found


async def test_a_quote_that_stands_there_is_cited_with_its_place_in_the_document() -> None:
    asking = desk()
    (citation,) = check(asking, "?", [Quote(source=1, quote="lies on")], [TOWN])
    assert citation == {
        "passage": "town",
        "document": "doc-town",
        "title": "Town",
        "quote": "lies on",
        "start": 105,
        "end": 112,
    }
    assert asking.warnings == []


async def test_a_misquoted_source_is_cited_where_it_has_the_answer() -> None:
    (citation,) = check(desk(), "1861", [Quote(source=1, quote="born in the year 1861")], [TOWN])
    assert citation["quote"] == "in 1861 (so they say)."


async def test_what_resolves_in_neither_way_is_dropped_and_reported() -> None:
    asking = desk()
    assert check(asking, "?!", [Quote(source=1, quote="nothing"), Quote(source=2, quote="Varn")], [TOWN]) == []
    assert asking.warnings == [
        "dropped a citation of source 1: neither its quote nor the answer stands in town",
        "dropped a citation of source 2: no such source was shown",
    ]


LIFE = "Lena Holt lived in Varn.\nHolt was born in 1861. She taught until 1890. She died in 1933, in 1861 style."
MAYOR = passage("mayor", LIFE)


@pytest.mark.parametrize(
    ("answer", "quote", "cited_instead"),
    [
        ("1933", "She taught", "She died in 1933, in 1861 style."),
        ("1861", "Lena Holt lived", "Holt was born in 1861."),  # the nearest of two
        ("1861", "She died in 1933", "She died in 1933, in 1861 style."),  # the sentence that it is taken from
        ("1861", "was born in 1861", "was born in 1861"),
        ("1704", "She taught", "She taught"),  # nothing says it
        ("yes", "She taught", "She taught"),
    ],
)
async def test_a_quote_without_the_answer_makes_way_for_a_sentence_that_has_it(
    answer: str, quote: str, cited_instead: str
) -> None:
    found = cited(desk(), answer, [Quote(source=1, quote=quote)], [MAYOR])
    assert [each["quote"] for each in found] == [cited_instead]
    assert resolves(found[0], [MAYOR])


async def test_where_no_cited_passage_has_the_answer_another_one_is_cited_too() -> None:
    quotes = [Quote(source=1, quote="Its mayor is Dr. Lena Holt!"), Quote(source=1, quote="Varn lies")]
    found = cited(desk(), "1933", quotes, [TOWN, MAYOR])
    assert [each["passage"] for each in found] == ["town", "town", "mayor"]
    assert found[-1]["quote"] == "She died in 1933, in 1861 style."
    assert cited(desk(), "Varn", [], [TOWN, MAYOR]) == support("Varn", [TOWN, MAYOR])
    assert cited(desk(), "", quotes, [TOWN, MAYOR]) == []


async def test_any_quote_of_a_passage_that_is_about_the_answer_stays() -> None:
    """Which of two came first is told by a year that stands beside "it", not beside the name."""
    mill = passage("mill", "The Ostel Mill is of stone. It was founded in 1811.")
    mill = replace(mill, title="Ostel Mill")
    found = cited(desk(), "Ostel Mill", [Quote(source=1, quote="founded in 1811")], [mill])
    assert [each["quote"] for each in found] == ["founded in 1811", "The Ostel Mill is of stone."]


async def test_quotes_that_make_way_for_one_sentence_are_one_citation() -> None:
    quotes = [Quote(source=1, quote=quote) for quote in ("Lena Holt lived", "She taught", "She died")]
    assert [each["quote"] for each in cited(desk(), "1890", quotes, [MAYOR])] == ["She taught until 1890."]


async def test_a_citation_of_what_is_no_longer_shown_is_kept() -> None:
    quotes = check(desk(), "1933", [Quote(source=1, quote="Varn lies")], [TOWN])
    assert saying("1933", quotes, [MAYOR])[0] == quotes[0]


async def test_the_same_place_is_cited_once() -> None:
    twice = [Quote(source=1, quote="Varn"), Quote(source=1, quote="VARN")]
    assert len(check(desk(), "?", twice, [TOWN])) == 1


@given(st.text(), st.text(), st.integers(1, 4), st.lists(st.text(min_size=1), max_size=3))
async def test_no_citation_is_invented(answer: str, quote: str, source: int, texts: list[str]) -> None:
    shown = [passage(str(at), text) for at, text in enumerate(texts)]
    citations = check(desk(), answer, [Quote(source=source, quote=quote[:240])], shown)
    assert all(resolves(citation, shown) for citation in citations)


@given(st.text(min_size=1), st.data())
def test_every_literal_quote_resolves(text: str, data: Any) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))]
    if quote.strip().strip("\"'“”‘’").split():
        assert locate(quote, text)


def test_marks_are_cleaned_off() -> None:
    assert clean(" Varn [1], on the Oss [2, 3] ") == "Varn, on the Oss"


async def test_a_note_names_each_passage_once_and_a_remark_only_if_there_is_one() -> None:
    citations = check(desk(), "?", [Quote(source=1, quote="Varn"), Quote(source=1, quote="Oss")], [TOWN])
    assert note("q", "f", citations)["passages"] == ["town"]
    assert "remark" not in note("q", "f", citations)
    assert note("q", "f", [], "second attempt")["remark"] == "second attempt"


def test_a_finding_that_is_empty_is_shown_as_not_found() -> None:
    assert [step.answer for step in known_steps([note("q", "", []), note("q", "f", [])])] == ["not found", "f"]


@pytest.mark.parametrize(
    ("status", "text", "cited"),
    [
        ("answered", "x", 1),
        ("out_of_budget", "x", 1),
        ("out_of_budget", "", 0),
        ("unknown", "", 0),
        ("refused", "I will not say", 0),
    ],
)
async def test_only_an_answer_cites_and_nothing_twice(status: Status, text: str, cited: int) -> None:
    (citation,) = check(desk(), "?", [Quote(source=1, quote="Varn")], [TOWN])
    verdict = conclude(status, text, [note("a", "b", [citation]), note("c", "d", [Citation(**citation)])])
    assert len(verdict["citations"]) == cited


class Two:
    """Finds by the query's text."""

    async def search(self, query: Query) -> list[Hit]:
        return [Hit(passage=passage(query.text, f"About {query.text}: “ä”."), score=1.0, rank=1)] * query.k


async def test_what_was_found_is_kept_as_it_was() -> None:
    archive = MemoryArchive()
    context = Context(model=ScriptedModel(), retriever=Two(), archive=archive, settings=Settings())
    found = await find(context, {"a": Query(text="tower", k=1), "b": Query(text="bridge", k=2)})
    assert [len(references) for references in found.values()] == [1, 2]
    shown = await load(archive, found["a"] + found["b"])
    assert [each.id for each in shown] == ["tower", "bridge", "bridge"]
    assert shown[0] == passage("tower", "About tower: “ä”.")
    assert [source.title for source in sources(shown)] == ["Tower", "Bridge", "Bridge"]


@pytest.mark.parametrize("answer", ["no", "Yes.", "NO"])
def test_a_yes_or_no_is_not_found_in_a_sentence(answer: str) -> None:
    assert sentence_with(answer, "There is no bridge. Yes, there was.") is None


class ByName:
    """Finds a passage along a name; how far that and how far its own words count is said by the test."""

    def __init__(self, edges: float, alone: float, source: str) -> None:
        self._parts = {"edges": edges, "alone": alone}
        self._source = source

    async def search(self, query: Query) -> list[Hit]:
        reason = Reason(
            kind="names",
            source=self._source,
            name="Lena\n Holt",
            stands_in="film",
            start=0,
            end=1,
            sentence="",
            gain=1.0,
        )
        why = Explanation(parts=self._parts, reasons=(reason,))
        return [Hit(passage=TOWN, score=1.0, rank=1, why=why)]


@pytest.mark.parametrize(
    ("edges", "alone", "source", "told"),
    [(0.6, 0.5, "film", True), (0.4, 0.5, "film", False), (0.6, 0.5, "", False)],
)
async def test_a_citation_says_by_which_name_its_passage_was_found(
    edges: float, alone: float, source: str, told: bool
) -> None:
    archive = MemoryArchive()
    context = Context(
        model=ScriptedModel(), retriever=ByName(edges, alone, source), archive=archive, settings=Settings()
    )
    shown = await load(archive, (await find(context, {"": Query(text="mayor")}))[""])
    [citation] = support("Lena Holt", shown)
    assert citation.get("why") == ({"passage": "film", "name": "Lena Holt"} if told else None)
    assert resolves(citation, [TOWN])


def test_a_place_that_was_found_in_two_ways_is_cited_once() -> None:
    [plain] = support("Lena Holt", [TOWN])
    reached = Citation(**plain, why={"passage": "film", "name": "Lena Holt"})
    notes = [note("a", "Lena Holt", [plain]), note("b", "Lena Holt", [reached])]
    assert conclude("answered", "Lena Holt", notes)["citations"] == [plain]


def test_names_are_short_findings() -> None:
    long = "She was born in a house by the river."
    assert names_in(["Lena Holt", " Varn ", "no", "Yes", "", long, "Varn"]) == ("Lena Holt", "Varn")


def test_a_query_builds_on_the_findings_that_it_says() -> None:
    known = {"1": note("Who?", "Lena Holt", []), "2": note("Where?", "Varn", []), "3": note("When?", "18", [])}
    asked = Question(question="Where was the mayor born?", notes=known)
    query = as_query("Where was lena holt born in 1861?", asked, k=3, mode="graph", seen=["town"])
    assert (query.entities, query.seen, query.hop) == (("Lena Holt",), {"town"}, True)
    assert not as_query(asked.question, asked, k=3, mode="graph", seen=()).hop


@pytest.mark.parametrize(
    ("answer", "text"),
    [("word", "word. " * 35_000), ("a b", "a b\n" * 50_000), ("x", " " * 200_000), ("x", "[1, " * 50_000)],
)
def test_finding_an_answer_in_hostile_text_takes_linear_time(answer: str, text: str) -> None:
    started = time.process_time()
    saying(answer, [], [passage("hostile", text)])
    assert locate(f"{answer} no", text) is None
    clean(text)
    assert time.process_time() - started < 15, "quadratic time is minutes"
