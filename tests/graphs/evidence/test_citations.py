"""Verification of citations, and the positions of quotes and answers."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.runtime import Runtime
from linear_time import takes_linear_time
from scenes import passage, resolves
from scripted_model import ScriptedModel

from sleuth.agents.formatting import UNNAMED, Quote
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.answer import Citation, Status
from sleuth.graphs.core.context import Context
from sleuth.graphs.core.node import Call
from sleuth.graphs.core.passages import deserialize_passage, serialize_passage
from sleuth.graphs.core.state import Question, RunState
from sleuth.graphs.evidence.citations import (
    citation_at,
    cite_closest,
    cite_reading,
    ensure_verbatim_support,
    find_support,
    verified_citations,
    verify_quotes,
)
from sleuth.graphs.evidence.outcomes import make_note, make_verdict
from sleuth.graphs.evidence.retrieval import (
    make_query,
    search_passages,
    short_names,
)
from sleuth.graphs.evidence.text_spans import find_quote, find_sentence, numbers_in, strip_marks
from sleuth.tools.evidence_checker.checker import AnswerSpan, Reading
from sleuth.tools.search.retriever import Query, Retriever
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Explanation, Hit, Reason

TEXT = "Varn lies on the Oss.\nIts mayor is Dr. Lena Holt! She was  born\nin 1861 (so they say)."
TOWN = passage("town", TEXT)


def desk() -> ModelCaller:
    return ModelCaller(ScriptedModel(), MemoryArchive(), seed="")


MARKED = "It is “the finest – by far” of the co\u00adast… It’s 10\u00a0000—really – a well‑known «mill»."


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("Its mayor", TEXT, "Its mayor"),
        ("  'its MAYOR is' ", TEXT, "Its mayor is"),
        ("“She was born in 1861”", TEXT, "She was  born\nin 1861"),
        ("(so they say).", TEXT, "(so they say)."),
        ("Varn  Oss", TEXT, None),
        ("", TEXT, None),
        ('" "', TEXT, None),
        ('"the finest - by far"', MARKED, "the finest – by far"),
        ("'the finest—by far'", MARKED, "the finest – by far"),
        ("of the coast", MARKED, "of the co\u00adast"),
        ("by far' of the coast...  It's", MARKED, "by far” of the co\u00adast… It’s"),
        ("...of the coast…", MARKED, "of the co\u00adast"),
        ("It`s 10 000 -- really", MARKED, "It’s 10\u00a0000—really"),
        ("a well-known 'mill'", MARKED, "a well‑known «mill"),
        ("a well\u00ad-known", MARKED, "a well‑known"),
        ("well known", MARKED, None),
        ("«", MARKED, "«"),
        ("\u00ad", MARKED, "\u00ad"),
    ],
)
def test_find_quote_ignores_case_white_space_and_shapes_of_marks(quote: str, text: str, found: str | None) -> None:
    span = find_quote(quote, text)
    assert (text[slice(*span)] if span else None) == found


@pytest.mark.parametrize("quote", ["Apply with the form today", "the [form](https://x.org/f7) today", "form"])
def test_find_quote_ignores_addresses_of_links(quote: str) -> None:
    text = "Apply with the [form](https://x.org/f7) today."
    span = find_quote(quote, text)
    assert span and "form" in text[slice(*span)]


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("varn", TEXT, "Varn lies on the Oss."),
        ("the Oss. [1, 2]", TEXT, "Varn lies on the Oss."),
        ("1861", TEXT, "in 1861 (so they say)."),
        ("Lena Holt", TEXT, "Its mayor is Dr. Lena Holt!"),
        ("186", TEXT, None),
        ("arn", TEXT, None),
        ("[1]", TEXT, None),
        *((each, MARKED, MARKED) for each in ("the finest - by far", '"the finest – by far"', "coast")),
        *((each, MARKED, MARKED) for each in ("It's 10 000", "well-known")),
    ],
)
def test_find_sentence_returns_sentence_or_line(answer: str, text: str, found: str | None) -> None:
    span = find_sentence(answer, text)
    assert (text[slice(*span)] if span else None) == found


BUILT = passage("mill", "The Old Mill was built by Ada Brask in 1871. It is “the finest”.")
BORN = passage("ada", "Ada Brask was born in Varn. Ada Brask drew the Old Mill.")
ASKED = "Who built the Old Mill?"


@pytest.mark.parametrize(
    ("source", "quote", "cited", "warned"),
    [
        (2, "The Old Mill was built by Ada Brask in 1871.", "The Old Mill was built by Ada Brask in 1871.", 0),
        (UNNAMED, "built by Ada Brask", "built by Ada Brask", 0),
        (1, "It is 'the finest'", "It is “the finest", 0),
        (1, "The Old Mill was made by Ada Brask", "The Old Mill was built by Ada Brask in 1871.", 0),
        (2, "The Old Mill was made by Ada Brask", "Ada Brask drew the Old Mill.", 0),
        (2, "", "Ada Brask drew the Old Mill.", 0),
        (3, "The Old Mill was built by Ada Brask in 1871.", None, 1),
    ],
)
async def test_verify_quotes_looks_in_all_sources_first(
    source: int, quote: str, cited: str | None, warned: int
) -> None:
    asking, shown = desk(), [BUILT, BORN]
    found = verify_quotes(asking, "Ada Brask", [Quote(source=source, quote=quote)], shown, question=ASKED)
    assert [each["quote"] for each in found] == ([cited] if cited else [])
    assert all(resolves(each, shown) for each in found)
    assert len(asking.warnings) == warned


async def test_verify_quotes_drops_sentence_off_the_question() -> None:
    asking, born = desk(), passage("ada", "Ada Brask was born in Varn.")
    wrong = [Quote(source=1, quote="Ada Brask made the mill")]
    assert verify_quotes(asking, "Ada Brask", wrong, [born, BUILT], question=ASKED) == []
    assert len(asking.warnings) == 1
    found = verified_citations(desk(), "Ada Brask", wrong, [born, BUILT], question=ASKED)
    assert [each["quote"] for each in found] == ["The Old Mill was built by Ada Brask in 1871."]


AGED = passage("cheese", "Ostel cheese is aged for three weeks.")
FERRY = passage("ferry", "Three sailings weekly, from the quay.")


@pytest.mark.parametrize(
    ("quotes", "cited"),
    [
        (["Three sailings weekly", "aged for three weeks"], ["aged for three weeks"]),
        (["Three sailings weekly"], ["Ostel cheese is aged for three weeks."]),
        ([], ["Ostel cheese is aged for three weeks."]),
    ],
)
async def test_citations_share_a_word_with_the_question(quotes: list[str], cited: list[str]) -> None:
    given = [Quote(source=UNNAMED, quote=quote) for quote in quotes]
    asked = "How many weeks is Ostel cheese aged?"
    found = verified_citations(desk(), "three", given, [FERRY, AGED], question=asked)
    assert [each["quote"] for each in found] == cited
    assert find_support("three", [FERRY], question=asked) == []


async def test_second_hop_is_cited_by_its_link_to_the_first() -> None:
    film = replace(passage("film", "The Mill is a film by Ada Brask."), title="The Mill")
    person = replace(passage("ada", "She is the daughter of Lena Holt."), title="Ada Brask")
    given = [Quote(source=1, quote="a film by Ada Brask"), Quote(source=2, quote="the daughter of Lena Holt")]
    asked = "Who is the mother of the director of The Mill?"
    found = verified_citations(desk(), "Lena Holt", given, [film, person], question=asked)
    assert [each["passage"] for each in found] == ["film", "ada"]


async def test_verify_quotes_drops_unresolved_with_warning() -> None:
    asking = desk()
    assert verify_quotes(asking, "?!", [Quote(source=1, quote="nothing"), Quote(source=2, quote="Varn")], [TOWN]) == []
    assert asking.warnings == [
        "dropped a citation of source 1: neither its quote nor the answer is in town",
        "dropped a citation of source 2: no such source was shown",
    ]


LIFE = "Lena Holt lived in Varn.\nHolt was born in 1861. She taught until 1890. She died in 1933, in 1861 style."
MAYOR = passage("mayor", LIFE)
LATE = passage("late", "She taught in 1861. She died in 1933, in the style of 1861.")


MILL = replace(passage("mill", "The Ostel Mill is of stone. It was founded in 1811."), title="Ostel Mill")
TWO = ["Its mayor is Dr. Lena Holt!", "Varn lies"]


@pytest.mark.parametrize(
    ("answer", "quotes", "shown", "cited"),
    [
        ("1933", ["She taught"], [MAYOR], ["She died in 1933, in 1861 style."]),
        ("1861", ["Lena Holt lived"], [MAYOR], ["Holt was born in 1861."]),  # the nearest of two
        ("1861", ["She died in 1933"], [MAYOR], ["She died in 1933, in 1861 style."]),  # the sentence it is taken from
        ("1861", ["She died in 1933"], [LATE], ["She died in 1933, in the style of 1861."]),
        ("1861", ["was born in 1861"], [MAYOR], ["was born in 1861"]),
        ("1861", ["born in the year 1861"], [TOWN], ["in 1861 (so they say)."]),
        ("1704", ["She taught"], [MAYOR], ["She taught"]),  # no passage contains it
        ("yes", ["She taught"], [MAYOR], ["She taught"]),
        ("1933", TWO, [TOWN, MAYOR], [*TWO, "She died in 1933, in 1861 style."]),
        ("Varn", [], [TOWN, MAYOR], ["Varn lies on the Oss."]),
        ("", TWO, [TOWN, MAYOR], []),
        ("Ostel Mill", ["founded in 1811"], [MILL], ["founded in 1811", "The Ostel Mill is of stone."]),  # its title
        ("1890", ["Lena Holt lived", "She taught", "She died"], [MAYOR], ["She taught until 1890."]),
        ("?", ["Varn", "VARN"], [TOWN], ["Varn"]),
    ],
)
async def test_verified_citations_contain_the_answer(answer: str, quotes: Any, shown: Any, cited: list[str]) -> None:
    found = verified_citations(desk(), answer, [Quote(source=1, quote=quote) for quote in quotes], shown)
    assert [each["quote"] for each in found] == cited
    assert all(resolves(each, shown) for each in found)


async def test_verbatim_support_keeps_citation_of_hidden_passage() -> None:
    quotes = verify_quotes(desk(), "1933", [Quote(source=1, quote="Varn lies")], [TOWN])
    assert ensure_verbatim_support("1933", quotes, [MAYOR])[0] == quotes[0]


@given(st.text(), st.text(), st.integers(1, 4), st.lists(st.text(min_size=1), max_size=3))
async def test_verify_quotes_invents_no_citation(answer: str, quote: str, source: int, texts: list[str]) -> None:
    shown = [passage(str(at), text) for at, text in enumerate(texts)]
    citations = verify_quotes(desk(), answer, [Quote(source=source, quote=quote[:240])], shown)
    assert all(resolves(citation, shown) for citation in citations)


@given(st.text(min_size=1), st.data())
def test_verify_quotes_resolves_every_literal_quote(text: str, data: Any) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))]
    if quote.strip().strip("\"'“”‘’").split():
        assert find_quote(quote, text)


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("Someone was born.", ["She was  born", "Holt was born here in 1861."]),
        ("The mayor of Varn is Lena Holt.", ["Its mayor is Dr. Lena Holt!"]),
        ("A plaque.", ["A plaque hangs there."]),
        ("A plaque hangs on the Oss.", ["Varn lies on the Oss.", "A plaque hangs there."]),
        ("Niemand.", ["Varn lies on the Oss.", "A plaque hangs there."]),
    ],
)
def test_sentence_cites_the_passages_that_share_its_words(text: str, quotes: list[str]) -> None:
    other = passage("other", "A plaque hangs there. Holt was born here in 1861.")
    assert [each["quote"] for each in cite_closest(text, [TOWN, other])] == quotes


def test_cited_reading_follows_the_line_that_names_its_passage() -> None:
    film, person = passage("film", "The Mill\nBy Ada Brask\nIn colour"), passage("ada", "She was born in Varn.")
    span = AnswerSpan(passage=1, start=16, end=20, text="Varn", score=0.9)
    read = Reading(answerable=0.9, yes=0, no=0, spans=(span,), relevance=(0.9, 0.9))
    citations = cite_reading("Where was she born?", read, [film, replace(person, title="Ada Brask")])
    assert [citation["quote"] for citation in citations] == ["By Ada Brask", "She was born in Varn."]


@pytest.mark.parametrize(
    ("text", "numbers"), [("EUR 1,200 on 3.5.2027", {"1200", "352027"}), ("none", set()), ("1868.", {"1868"})]
)
def test_numbers_are_read_without_separators(text: str, numbers: set[str]) -> None:
    assert numbers_in(text) == numbers


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
async def test_make_verdict_cites_for_answers_only_and_once(status: Status, text: str, cited: int) -> None:
    (citation,) = verify_quotes(desk(), "?", [Quote(source=1, quote="Varn")], [TOWN])
    verdict = make_verdict(status, text, [make_note("a", "b", [citation]), make_note("c", "d", [Citation(**citation)])])
    assert len(verdict["citations"]) == cited


def call_over(retriever: Retriever, archive: MemoryArchive) -> Call[Settings]:
    context = Context(model=ScriptedModel(), retriever=retriever, archive=archive, settings=Settings())
    return Call(RunState(question="?"), Runtime(context=context), Settings())


class ByName:
    """A retriever that reaches a passage along a name, with the scores of the test."""

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
        why = Explanation(parts=self._parts, reasons=(reason, replace(reason, source="other", gain=0.5)))
        return [Hit(passage=TOWN, score=1.0, rank=1, why=why)]


@pytest.mark.parametrize(
    ("edges", "alone", "source", "told"),
    [(0.6, 0.5, "film", True), (0.4, 0.5, "film", False), (0.6, 0.5, "", False)],
)
async def test_citation_has_path_of_graph_search(edges: float, alone: float, source: str, told: bool) -> None:
    archive = MemoryArchive()
    call = call_over(ByName(edges, alone, source), archive)
    shown = call.passages((await search_passages(call, {"": Query(text="mayor")}))[""])
    [citation] = find_support("Lena Holt", shown)
    assert citation.get("why") == ({"passage": "film", "name": "Lena Holt"} if told else None)
    assert resolves(citation, [TOWN])


def test_make_verdict_ignores_path_of_equal_places() -> None:
    [plain] = find_support("Lena Holt", [TOWN])
    reached = Citation(**plain, why={"passage": "film", "name": "Lena Holt"})
    notes = [make_note("a", "Lena Holt", [plain]), make_note("b", "Lena Holt", [reached])]
    assert make_verdict("answered", "Lena Holt", notes)["citations"] == [plain]


def test_citation_has_the_place_of_its_passage() -> None:
    page = replace(TOWN, location="p. 12")
    found = deserialize_passage(serialize_passage(page))
    assert found == page
    citation = citation_at(found, (0, 4))
    assert (citation["quote"], citation["location"]) == ("Varn", "p. 12")
    assert "location" not in citation_at(TOWN, (0, 4))
    assert "location" not in serialize_passage(TOWN)


def test_short_names_returns_short_findings() -> None:
    long = "She was born in a house by the river."
    assert short_names(["Lena Holt", " Varn ", "no", "Yes", "", long, "Varn"]) == ("Lena Holt", "Varn")


def test_make_query_uses_mentioned_findings() -> None:
    known = {
        "1": make_note("Who?", "Lena Holt", []),
        "2": make_note("Where?", "Varn", []),
        "3": make_note("When?", "18", []),
    }
    asked = Question(question="Where was the mayor born?", notes=known)
    settings = Settings()
    query = make_query(settings, "Where was lena holt born in 1861?", asked, seen=frozenset({"town"}))
    assert (query.entities, query.seen, query.hop) == (("Lena Holt",), {"town"}, True)
    assert not make_query(settings, asked.question, asked).hop


@pytest.mark.parametrize(("answer", "piece"), [("word", "word. "), ("a b", "a b\n"), ("x", " "), ("x", "[1, ")])
def test_find_sentence_in_hostile_text_takes_linear_time(answer: str, piece: str) -> None:
    def find(size: int) -> None:
        text = piece * (size // len(piece))
        ensure_verbatim_support(answer, [], [passage("hostile", text)])
        assert find_quote(f"{answer} no", text) is None
        strip_marks(text)

    assert takes_linear_time(find)
