"""The check of an answer by the evidence checker: accepted, answered once more, or unknown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from all_roles_model import AllRolesModel
from scenes import Case, Replying, Shelf, example, passage, plain
from scripted_checker import ScriptedChecker
from scripted_model import ScriptedModel

from sleuth.agents.roles.reading import READ
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.answer import Citation, Threshold
from sleuth.graphs.core.context import Budget, CheckedSettings
from sleuth.graphs.core.method import Method
from sleuth.graphs.evidence.check import assess, cited_passages, support_of_run
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.service import RunService, Services
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence
from sleuth.tools.evidence_checker.checker import Reading

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high.")
RAIN = passage("rain", "Rain falls in Isk, where nothing stands.")
CHECKED = Settings(check_evidence=True)
FITTED = {READ.prompt: Threshold(value=0.9, by="fitted")}


def reading(answer: str, source: int = 1, quote: str = "") -> dict[str, Any]:
    citations = [{"source": source, "quote": quote or answer}]
    return {"answerable": True, "answer": answer, "citations": citations}


async def test_supported_answer_is_accepted_with_its_support() -> None:
    case, checker = plain([reading("Varn")], [RAIN, TOWER], CHECKED), ScriptedChecker()
    verdict = await case.run("Where does the tower stand?", checker=checker)
    assert case.nodes == ["retrieve", "answer", "check_evidence"]
    assert checker.read_of == [("Where does the tower stand?", ["Tower"])], "the cited passages only"
    assert verdict["text"] == "Varn"
    assert verdict["support"] == {"score": pytest.approx(0.9 * 0.9 * 0.8), "answerable": 0.9}
    assert case.prompts() == ["reader/read"]


async def test_second_attempt_reads_the_most_relevant_passages() -> None:
    case = plain([reading("Isk"), reading("Varn")], [RAIN, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower"]
    again = case.model.requests[1].input
    assert [source["title"] for source in again["sources"]] == ["Tower", "Rain"]
    assert again["known"] == ({"question": "Do the sources support the answer “Isk”?", "answer": "no"},)
    assert [note["finding"] for note in case.state["notes"].values()] == ["Varn"]
    assert any("do not support the answer 'Isk'" in warning for warning in case.state["warnings"])


async def test_span_of_the_checker_replaces_an_unsupported_answer() -> None:
    settings = CHECKED.model_copy(update={"check_spans": True})
    case = plain([reading("Isk")], [RAIN, TOWER], settings)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert [citation["quote"] for citation in verdict["citations"]] == ["The tower stands in Varn."]
    assert verdict["support"]["replaced"] == "Isk", "nothing is replaced silently"
    assert verdict["support"]["weak"], "two readings disagree"
    assert case.prompts() == ["reader/read"]


async def test_answer_that_other_passages_support_is_not_called_replaced() -> None:
    settings = CHECKED.model_copy(update={"check_spans": True})
    wet = passage("rain", "It rains in Varn.")
    case = plain([reading("Varn", quote="It rains in Varn.")], [wet, TOWER], settings)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower"]
    assert verdict["support"].keys() == {"score", "answerable"}


@pytest.mark.parametrize(("probability", "is_weak"), [(0.9, False), (0.3, True)])
async def test_answer_with_little_support_is_marked_as_weak(probability: float, is_weak: bool) -> None:
    case = plain([reading("Varn")], [RAIN, TOWER], CHECKED.model_copy(update={"min_support": 0.05}))
    verdict = await case.run("Where?", checker=ScriptedChecker(answerable=probability))
    assert (verdict["status"], verdict["support"].get("weak", False)) == ("answered", is_weak)


@pytest.mark.parametrize("second", [reading("Isk"), {"answerable": False}, "no JSON"])
async def test_answer_unsupported_twice_is_unknown_with_what_is_missing(second: Any) -> None:
    case = plain([reading("Isk"), second, second], [RAIN, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert (verdict["status"], verdict["citations"]) == ("unknown", [])
    assert "- Where does the tower stand?" in verdict["text"]
    assert verdict["support"] == {"score": 0, "answerable": 0.1, "nearest": "Varn"}
    assert "Nearest, but not supported: Varn" in verdict["text"]
    assert case.state["notes"] == {}


async def test_unsupported_answer_without_budget_is_unknown() -> None:
    case = plain([reading("Isk")], [RAIN, TOWER], CHECKED, budget=Budget(max_calls=1))
    assert (await case.run("Where?", checker=ScriptedChecker()))["status"] == "unknown"


@pytest.mark.parametrize(
    ("said", "settings", "services"),
    [
        (reading("Isk"), Settings(), {"checker": ScriptedChecker()}),
        (reading("Isk"), Settings(), {"thresholds": FITTED}),
        ({"answerable": False}, CHECKED, {"checker": ScriptedChecker()}),
    ],
    ids=["not set or fitted", "fitted, but no checker", "no answer"],
)
async def test_no_check(said: dict[str, Any], settings: Settings, services: dict[str, Any]) -> None:
    case = plain([said], [RAIN], settings)
    verdict = await case.run("Where?", **services)
    assert (case.nodes, "support" in verdict) == (["retrieve", "answer"], False)


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ({}, "unknown"),
        ({"min_support": 0.5}, "Varn"),
        ({"min_support": 0.5, "check_spans": False}, "unknown"),
        ({"check_evidence": False}, "Isk"),
    ],
)
async def test_answers_are_checked_as_fitted_for_the_model(values: dict[str, Any], end: str) -> None:
    case = plain([reading("Isk"), {"answerable": False}], [RAIN, TOWER], Settings(**values))
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker(), thresholds=FITTED)
    assert end in (verdict["status"], verdict["text"])
    assert ("support" in verdict) == (values.get("check_evidence") is not False)


async def test_yes_of_the_checker_cites_the_most_relevant_passages() -> None:
    class Affirming(ScriptedChecker):
        def read(self, question: str, passages: Sequence[Evidence]) -> Reading:
            found = super().read(question, passages)
            return replace(found, answerable=0.9, yes=0.8, no=0.1, spans=())

    case = plain([reading("no")], [RAIN, TOWER], CHECKED.model_copy(update={"check_spans": True, "min_support": 0.2}))
    verdict = await case.run("Does the tower stand in Varn?", checker=Affirming())
    assert verdict["text"] == "yes"
    quotes = [citation["quote"] for citation in verdict["citations"]]
    assert quotes == ["The tower stands in Varn.", "Rain falls in Isk, where nothing stands."]


async def test_run_with_a_check_needs_a_checker(store: Store) -> None:
    runs = RunService(store, Services(model=ScriptedModel([]), retriever=Shelf([])))
    with pytest.raises(UsageError, match="SLEUTH_CHECKER"):
        await runs.start("Where?", "plain-rag", values={"check_evidence": True})
    assert await store.threads.list_newest() == []


async def test_graph_with_a_check_needs_a_checker() -> None:
    with pytest.raises(UsageError, match="`checker` of the Context"):
        await plain([reading("Varn")], [TOWER], CHECKED).run("Where?")


async def test_support_of_a_finished_run_equals_that_of_the_check() -> None:
    case = plain([reading("Varn")], [RAIN, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert await support_of_run(ScriptedChecker(), case.state, case.archive) == verdict["support"]


@pytest.mark.parametrize(("words", "supported", "score"), [(13, 0.8, 0.8), (13, 0.1, 0.1), (12, 0.8, 0.0)])
async def test_long_answer_is_checked_as_a_statement(words: int, supported: float, score: float) -> None:
    found = await assess(ScriptedChecker(supported=supported), "Where?", "word " * words, [TOWER])
    assert found["score"] == score


async def test_check_does_not_change_the_seeds_of_a_run() -> None:
    plainly, checked = (plain([reading("Varn")], [TOWER], settings) for settings in (Settings(), CHECKED))
    for case in (plainly, checked):
        await case.run("Where?", checker=ScriptedChecker())
    assert [request.sampling.seed for request in plainly.model.requests] == [
        request.sampling.seed for request in checked.model.requests
    ]


@pytest.mark.parametrize(
    "method", [each for each in METHODS.values() if "check_evidence" in each.nodes()], ids=lambda each: each.name
)
async def test_every_method_checks_its_answer(method: Method) -> None:
    chain = example("q03")
    settings = method.settings(check_evidence=True, min_support=0)
    assert issubclass(method.settings, CheckedSettings)
    case = Case(method.graph, Replying(AllRolesModel(chain).reply_to), Shelf(chain.passages), settings)
    verdict = await case.run(chain.question, checker=ScriptedChecker())
    assert verdict["status"] == "answered"
    assert case.nodes[-1] == "check_evidence"
    assert "support" in verdict


def test_quotes_from_outside_the_documents_are_passages_of_their_own() -> None:
    inside = Citation(passage="tower", document="d", title="Tower", quote="in Varn", start=118, end=125)
    outside = Citation(passage="", document="", title="Graph", quote="Varn: 5", start=0, end=7, kind="graph")
    first, second = cited_passages([inside, inside, outside], [TOWER])
    assert (first, second.text) == (TOWER, "Varn: 5")
