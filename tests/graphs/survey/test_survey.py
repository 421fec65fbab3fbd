"""A survey: every document is asked, what it states is checked, and figures are counted by code."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from contracts import CONTRACTS, END, FEE, Folder, read_contract, text_of
from scenes import Case, FailingLate, Json, Replying, Shelf, ask, down_once, finish, passage

from sleuth.agents.model import Request
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget, Services
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.survey.cells import Cell, Column, Row, figures_of, read_value
from sleuth.graphs.survey.graph import METHOD, Settings, read_table
from sleuth.tools.errors import ModelUnavailable, UsageError


def survey(answer: Callable[[Request], Any] = read_contract, budget: Budget | None = None, **settings: Any) -> Case:
    folder = Folder([passage(name, text_of(name)) for name in CONTRACTS])
    return Case(METHOD.graph, Replying(answer), folder, Settings(**settings), budget=budget or Budget())


async def test_every_document_is_asked_and_figures_are_counted() -> None:
    case = survey()
    verdict = await case.run("Which contracts end in 2027?")
    assert case.nodes == ["plan", "select", *["read"] * 4, "verify", "aggregate", "answer"]
    assert verdict["status"] == "answered"
    assert verdict["text"].startswith("2 contracts end in 2027.")
    table: Json = read_table(case.state) or {}
    assert {row["document"]: row["is_counted"] for row in table["rows"]} == {
        "doc-alder": True,
        "doc-birch": False,
        "doc-cedar": False,
        "doc-dogwood": True,
    }
    assert table["figures"] == [
        "documents asked: 4 of 4",
        "documents with end = 2027: 2",
        "end: stated in 2, not stated in 0",
        "end: earliest 2027-03-31, latest 2027-06-30",
        "fee: stated in 1, not stated in 1",
        "fee: sum 1,200, mean 1,200, smallest 1,200, largest 1,200",
    ]
    assert [each["quote"] for each in verdict["citations"]] == [
        "It ends on 2027-03-31.",
        "The fee is EUR 1,200.",
        "It ends on 2027-06-30.",
    ]


async def test_columns_that_are_given_are_not_planned() -> None:
    case = survey(columns=[FEE])
    await case.run("What do they cost in all?")
    assert case.prompts() == [*["reader/read"] * 4, "answerer/survey"]
    assert "fee: sum 2,450" in " ".join(case.state["figures"])


async def test_sentence_with_an_uncounted_number_is_replaced() -> None:
    def invent(request: Request) -> Any:
        return {"sentence": "17 contracts."} if request.role == "answerer" else read_contract(request)

    case = survey(invent)
    verdict = await case.run("Which contracts end in 2027?")
    assert verdict["text"].startswith("documents asked: 4 of 4; documents with end = 2027: 2;")


async def test_value_that_no_passage_contains_is_in_doubt_and_not_counted() -> None:
    def invent(request: Request) -> Any:
        if request.prompt != "reader/read":
            return read_contract(request)
        return {"answerable": True, "answer": "2031-01-01", "citations": [{"source": 1, "quote": "It never ends."}]}

    case = survey(invent, columns=[END])
    verdict = await case.run("When do they end?")
    assert verdict["status"] == "unknown"
    cells = [row["end"] for row in case.state["rows"].values()]
    assert [cell["doubt"] for cell in cells] == ["no passage of the document contains it"] * 4
    assert case.state["figures"] == ["documents asked: 4 of 4", "end: stated in 0, not stated in 0, in doubt in 4"]


async def test_batches_share_the_budget_and_a_larger_one_continues() -> None:
    case = survey(columns=[END, FEE], batch=2, budget=Budget(max_calls=6))
    verdict = await case.run("When do they end?")
    assert verdict["status"] == "out_of_budget"
    assert len(case.state["rows"]) == 2
    assert len(case.state["calls"]) == 5
    assert case.state["figures"][0] == "documents asked: 2 of 4"


async def test_survey_of_a_budget_without_room_asks_nothing() -> None:
    case = survey(columns=[END], budget=Budget(max_calls=1))
    assert (await case.run("When?"))["status"] == "out_of_budget"
    assert case.model.requests == []


@pytest.mark.parametrize(("thorough", "readings"), [(False, 1), (True, 3)])
async def test_long_document_is_searched_or_read_in_pieces(thorough: bool, readings: int) -> None:
    texts = [text_of("alder") if at == 5 else f"On {at} nothing." for at in range(6)]
    pages = [replace(passage(f"p{at}", text), document_id="doc") for at, text in enumerate(texts)]

    def look(request: Request) -> Any:
        found = [at for at, each in enumerate(request.input["sources"], 1) if "ends on" in each["text"]]
        quotes = [{"source": at, "quote": "It ends on 2027-03-31."} for at in found]
        return {"answerable": bool(found), "answer": "2027-03-31" if found else "", "citations": quotes}

    folder = Folder(pages, found={END["question"]: pages[4:]})
    settings = Settings(columns=[END], passages=2, thorough=thorough)  # type: ignore[arg-type]
    model = Replying(lambda each: read_contract(each) if each.role != "reader" else look(each))
    case = Case(METHOD.graph, model, folder, settings)
    await case.run("When?")
    assert case.prompts().count("reader/read") == readings
    assert [query.where for query in folder.queries] == ([] if thorough else ['id="doc"'])
    assert case.state["rows"]["doc"]["end"]["value"] == "2027-03-31"


async def test_budget_that_ends_within_long_documents_leaves_them_unread() -> None:
    pages = [replace(passage(f"{doc}{at}", text_of("alder")), document_id=doc) for doc in "ab" for at in range(6)]
    settings = Settings(columns=[END], passages=2, thorough=True)  # type: ignore[list-item]
    case = Case(METHOD.graph, Replying(read_contract), Folder(pages), settings, budget=Budget(max_calls=5))
    assert (await case.run("When?"))["status"] == "out_of_budget"
    assert case.state["rows"] == {}


async def test_beginning_of_a_long_document_is_read_if_no_passage_is_found() -> None:
    pages = [replace(passage(f"p{at}", text_of("alder")), document_id="doc") for at in range(6)]
    folder = Folder(pages, found={END["question"]: []})
    case = Case(METHOD.graph, Replying(read_contract), folder, Settings(columns=[END], passages=2))  # type: ignore[list-item]
    await case.run("When?")
    shown = next(each.input["sources"] for each in case.model.requests if each.role == "reader")
    assert [source["title"] for source in shown] == ["P0", "P1"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "EUR 420,000", 420_000.0),
        ("number", "1.234.567,89 €", 1_234_567.89),
        ("number", "1,234.5", 1234.5),
        ("number", "3.14", 3.14),
        ("number", "12,5 %", 12.5),
        ("number", "−7 °C", -7.0),
        ("number", "1 200 kg", 1200.0),
        ("number", "none", None),
        ("date", "31 March 2027", "2027-03-31"),
        ("date", "2027-03-31", "2027-03-31"),
        ("date", "31.03.2027", "2027-03-31"),
        ("date", "March 2027", "2027-03"),
        ("date", "in 2027", "2027"),
        ("date", "2027", "2027"),
        ("date", "at the end of the year", None),
        ("yes-no", "Yes, it does.", "yes"),
        ("yes-no", "No", "no"),
        ("yes-no", "north", None),
        ("text", "Three  months.", "three months"),
    ],
)
def test_values_are_read_as_their_kind(kind: Any, text: str, value: object) -> None:
    assert read_value(kind, text) == value


async def test_survey_needs_a_list_of_documents() -> None:
    case = Case(METHOD.graph, Replying(read_contract), Shelf([passage("a", "text")]), Settings(columns=(END,)))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="collection"):
        await case.run("When?")


def table_of(answer: Answer) -> Json:
    assert answer.table
    return {row["title"]: row["cells"] for row in answer.table["rows"]}


def service(store: Store, model: Replying, names: list[str]) -> RunService:
    folder = Folder([passage(name, text_of(name)) for name in names])
    return RunService(store, Services(model=model, retriever=folder))


@pytest.mark.parametrize("fails_at", [1, 3, 5, 8])
async def test_resumed_survey_repeats_no_call_and_has_the_same_table(store: Store, fails_at: int) -> None:
    model = FailingLate(down_once(read_contract, fails_at))
    runs = service(store, model, list(CONTRACTS))
    question, values = "When do they end?", {"columns": [END, FEE], "batch": 2}
    id = await runs.start(RunRequest(question=question, method="survey", values=values))
    with pytest.raises(ModelUnavailable):
        await finish(runs, id)
    answer = await finish(runs, id)
    del model.requests[fails_at - 1]
    ids = [request.call_id for request in model.requests]
    assert len(ids) == len(set(ids)) == 2 * len(CONTRACTS) + 1
    undisturbed = service(store, Replying(read_contract), list(CONTRACTS))
    other = await ask(undisturbed, question, "survey", values=values)
    assert (answer.text, answer.table) == (other.text, other.table)


async def test_update_asks_new_documents_only(store: Store) -> None:
    runs = service(store, Replying(read_contract), ["alder", "birch"])
    first = await ask(runs, "When do they end?", "survey", values={"columns": [END]})
    id, model = first.thread, Replying(read_contract)
    later = service(store, model, ["alder", "cedar", "dogwood"])
    assert table_of(await finish(later, id)) == table_of(first)  # without `update`, the answer is shown again
    await later.queue_survey_update(id)
    answer = await finish(later, id)
    asked = [request.input["sources"][0]["title"] for request in model.requests if request.role == "reader"]
    assert sorted(asked) == ["Cedar", "Dogwood"]
    assert list(table_of(answer)) == ["Doc-Alder", "Doc-Cedar", "Doc-Dogwood"]
    assert "documents asked: 3 of 3" in (answer.table or {})["figures"]


async def test_only_a_survey_can_be_updated(store: Store) -> None:
    runs = service(store, Replying(read_contract), ["alder"])
    id = await runs.start(RunRequest(question="Where?", method="plain-rag"))
    with pytest.raises(UsageError, match="only a survey"):
        await runs.queue_survey_update(id)


def test_texts_and_verdicts_are_counted_by_value() -> None:
    city, green = Column(name="city", question="?", kind="text"), Column(name="green", question="?", kind="yes-no")
    stated = [("Kassel", "Yes, it is."), ("kassel.", "no"), ("Leeds", "maybe")]
    rows: list[Row] = [
        {"city": Cell(value=one, citations=[]), "green": Cell(value=other, citations=[])} for one, other in stated
    ]
    assert figures_of(city, rows) == ["city: stated in 3, not stated in 0", "city: Kassel 2, Leeds 1"]
    assert figures_of(green, rows) == ["green: stated in 2, not stated in 1", "green: yes 1, no 1"]


@pytest.mark.parametrize(
    ("values", "sums"),
    [
        (("12 kg", "3 EUR"), ["sum of 1 in kg 12", "sum of 1 in EUR 3"]),
        (("$5", "USD 7", "€ 3", "4 euros"), ["sum of 2 in USD 12", "sum of 2 in EUR 7"]),
        (("1.2 million EUR", "EUR 300"), ["sum 1,200,300"]),
        (("12 employees", "1 employee in Leeds"), ["sum 13"]),
        (("25", "5 %"), ["sum of 1 in no unit 25", "sum of 1 in % 5"]),
        (("90 km per hour", "10 km"), ["sum of 1 in km per hour 90", "sum of 1 in km 10"]),
        (("3", "4 of them"), ["sum 7"]),
        (("-5 °C", "CHF 8.50"), ["sum of 1 in °c -5", "sum of 1 in CHF 8.5"]),
    ],
)
def test_numbers_of_different_units_are_not_added(values: tuple[str, ...], sums: list[str]) -> None:
    column = Column(name="x", question="How much?", kind="number")
    rows = [{"x": Cell(value=value, citations=[])} for value in values]
    assert [line.partition(", ")[0] for line in figures_of(column, rows)[1:]] == [f"x: {each}" for each in sums]
