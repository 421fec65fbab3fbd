"""Answers without a verified citation, where one is required."""

from typing import Any

import pytest
from all_roles_model import AllRolesModel
from scenes import Case, Replying, Shelf, example, passage, plain, resolves
from scripted_checker import ScriptedChecker
from scripted_model import ScriptedModel

from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.context import Budget, CitedSettings
from sleuth.graphs.core.method import Method
from sleuth.graphs.registry import METHODS
from sleuth.tools.errors import ModelUnavailable

TOWER = passage("tower", "The tower of the town was built in 1911. It is 30 m high.")
RAIN = passage("rain", "Rain falls in Isk, where nothing stands.")
ANSWER = {"answerable": True, "answer": "before the war", "citations": [{"source": 1, "quote": "never written"}]}
CITED = {"citations": [{"source": 1, "quote": "built in 1911"}]}
QUESTION = "When was the tower built?"
REQUIRED = Settings(require_citations=True)
BOTH = ["reader/read", "reader/cite"]


async def test_answer_is_asked_once_more_for_its_citation() -> None:
    case = plain([ANSWER, CITED], [RAIN, TOWER], REQUIRED)
    verdict = await case.run(QUESTION)
    assert (verdict["status"], verdict["text"]) == ("answered", "before the war")
    (cited,) = verdict["citations"]
    assert cited["quote"] == "built in 1911"
    assert resolves(cited, [TOWER])
    assert case.prompts() == BOTH
    assert [source["title"] for source in case.model.requests[1].input["sources"]] == ["Tower", "Rain"]
    assert [call["node"] for call in case.state["calls"].values()] == ["answer", "check_evidence"]


@pytest.mark.parametrize("reply", [{"citations": []}, {"citations": [{"source": 1, "quote": "invented"}]}])
async def test_answer_without_a_citation_is_refused(reply: dict[str, Any]) -> None:
    case = plain([ANSWER, reply], [RAIN, TOWER], REQUIRED)
    verdict = await case.run(QUESTION)
    assert verdict == {"status": "unknown", "text": "I found no answer.", "citations": []}
    assert (case.prompts(), case.state["notes"]) == (BOTH, {})


@pytest.mark.parametrize(("read", "end"), [("before the war", ("answered", True)), ("nothing", ("unknown", False))])
async def test_answer_without_a_citation_is_weak_if_the_checker_reads_it(read: str, end: tuple[str, bool]) -> None:
    case = plain([ANSWER, {"citations": []}], [RAIN, TOWER], REQUIRED)
    verdict = await case.run(QUESTION, checker=ScriptedChecker(read, "built in 1911"))
    assert (verdict["status"], verdict["support"].get("weak", False)) == end
    assert verdict["citations"] == []


async def test_no_budget_for_the_second_question_refuses_the_answer() -> None:
    case = plain([ANSWER], [TOWER], REQUIRED, budget=Budget(max_calls=1))
    assert (await case.run(QUESTION))["status"] == "unknown"
    assert "The budget has no room to ask for a citation." in case.state["warnings"]


async def test_resumed_run_repeats_only_the_call_that_failed() -> None:
    case = plain([ANSWER, ModelUnavailable("It is down: start it."), CITED], [TOWER], REQUIRED)
    with pytest.raises(ModelUnavailable):
        await case.run(QUESTION)
    assert (await case.run(QUESTION))["citations"]
    assert case.prompts() == [*BOTH, "reader/cite"]


@pytest.mark.parametrize(
    ("settings", "is_default", "calls"),
    [
        (Settings(), False, 1),
        (Settings(), True, 2),
        (Settings(require_citations=False), True, 1),
        (Settings().as_in_paper(), True, 1),
    ],
)
async def test_citations_are_required_by_the_setting_or_the_default(
    settings: Settings, is_default: bool, calls: int
) -> None:
    case = plain([ANSWER, CITED], [TOWER], settings)
    await case.run(QUESTION, require_citations=is_default)
    assert len(case.prompts()) == calls


async def test_closed_book_has_nothing_to_cite() -> None:
    method = METHODS["closed-book"]
    settings = method.settings(require_citations=True)
    case = Case(method.graph, ScriptedModel([{"answer": "Varn", "known": True}]), Shelf([TOWER]), settings)
    assert (await case.run(QUESTION))["status"] == "unknown"


@pytest.mark.parametrize("method", [each for each in METHODS.values() if each.needs_model], ids=lambda each: each.name)
def test_every_method_with_a_model_can_require_citations(method: Method) -> None:
    assert issubclass(method.settings, CitedSettings), (
        f"{method.settings.__module__}: derive Settings from CheckedSettings, or CitedSettings if it cites no passage"
    )
    assert ("check_evidence" in method.nodes()) != method.delegates, (
        "end graph() with add_evidence_check(graph, LAST_NODE); of a method that delegates, the asked methods check"
    )


async def test_cited_answer_costs_no_call() -> None:
    chain = example("q03")
    method = METHODS["par-rag"]
    runs = [
        Case(method.graph, Replying(AllRolesModel(chain).reply_to), Shelf(chain.passages), method.settings(**values))
        for values in ({}, {"require_citations": True})
    ]
    before, after = [await case.run(chain.question) for case in runs]
    assert before == after
    assert runs[0].prompts() == runs[1].prompts()
