"""The check of an answer by the evidence checker: its support, another finding, or a refusal."""

from dataclasses import replace
from typing import Any

import pytest
from all_roles_model import AllRolesModel
from scenes import Case, Replying, Shelf, example, passage, plain
from scripted_checker import ScriptedChecker
from scripted_model import ScriptedModel

from sleuth.agents.roles.reading import READ
from sleuth.graphs.baselines import self_ask
from sleuth.graphs.baselines.plain_rag import Settings
from sleuth.graphs.core.answer import Citation, Note, Threshold
from sleuth.graphs.core.context import CheckedSettings, Services
from sleuth.graphs.core.method import Method
from sleuth.graphs.evidence.check import assess, cited_passages, open_questions, refuse, support_of_run
from sleuth.graphs.evidence.citations import cite_sentence
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker.checker import SupportFit

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high.")
RAIN = passage("rain", "Rain falls in Isk, where nothing stands.")
CHECKED = Settings(check_evidence=True)
DIGEST = "ab" * 32
FITTED = {READ.prompt: Threshold(value=0.9, by="fitted")}


def reading(answer: str, source: int = 1, quote: str = "") -> dict[str, Any]:
    citations = [{"source": source, "quote": quote or answer}]
    return {"answerable": True, "answer": answer, "citations": citations}


async def test_supported_answer_is_accepted_with_its_support() -> None:
    case, checker = plain([reading("Varn")], [RAIN, TOWER], CHECKED), ScriptedChecker()
    verdict = await case.run("Where does the tower stand?", checker=checker)
    assert case.nodes == ["retrieve", "answer", "check_evidence"]
    asked = "Where does the tower stand?"
    assert checker.read_of == [(asked, ["Tower"]), (asked, ["Rain", "Tower"])], "the cited passages, and all"
    assert verdict["text"] == "Varn"
    assert verdict["support"] == {
        "score": pytest.approx(SupportFit().probability(0.9, 0.9 * 0.95), abs=1e-4),
        "answerable": 0.9,
    }
    assert case.prompts() == ["reader/read"]


async def test_question_like_an_archive_reference_is_checked() -> None:
    settings = self_ask.Settings(check_evidence=True)
    replies = [{"follow_up": "Yes", "question": DIGEST}, reading("Varn"), {"follow_up": "No", "answer": "Varn"}]
    case = Case(METHODS["self-ask"].graph, ScriptedModel(replies), Shelf([TOWER]), settings)
    assert (await case.run(DIGEST, checker=ScriptedChecker()))["text"] == "Varn"


async def test_answer_with_little_support_stays_with_what_the_checker_reads() -> None:
    case = plain([reading("Isk")], [RAIN, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert (verdict["status"], verdict["text"]) == ("answered", "Isk"), "no answer is replaced"
    assert [citation["passage"] for citation in verdict["citations"]] == ["rain"]
    assert verdict["support"]["weak"]
    assert verdict["support"]["also"]["text"] == "Varn"
    (quote,) = verdict["support"]["also"]["citations"]
    assert (quote["passage"], quote["quote"]) == ("tower", "The tower stands in Varn.")
    assert case.prompts() == ["reader/read"]


async def test_the_same_answer_from_other_passages_is_not_another_one() -> None:
    wet = passage("rain", "It rains on the tower in Varn.")
    case = plain([reading("Varn", quote="It rains on the tower in Varn.")], [wet, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert verdict["support"].keys() == {"score", "answerable"}


@pytest.mark.parametrize(("answer", "also"), [("the ferry", ""), ("the mill", "the ferry")])
async def test_comparison_is_checked_by_the_date_of_each(answer: str, also: str) -> None:
    class Dating(ScriptedChecker):
        def read(self, question: str, passages: Any) -> Any:
            self.answer, self.evidence = ("1911", "The mill") if "mill" in question else ("1904", "The ferry")
            return super().read(question, passages)

    mill, ferry = passage("mill", "The mill was built in 1911."), passage("ferry", "The ferry was built in 1904.")
    case = plain([reading(answer, quote="built in 1911")], [mill, ferry], CHECKED)
    verdict = await case.run("Which was built first, the mill or the ferry?", checker=Dating())
    assert verdict["text"] == answer
    assert verdict["support"].get("weak", False) == bool(also)
    other = verdict["support"].get("also", {"text": "", "citations": []})
    assert (other["text"], [each["quote"] for each in other["citations"]]) == (also, [ferry.text] if also else [])


@pytest.mark.parametrize(("probability", "is_weak"), [(0.9, False), (0.3, True)])
async def test_answer_with_little_support_is_marked_as_weak(probability: float, is_weak: bool) -> None:
    case = plain([reading("Varn")], [RAIN, TOWER], CHECKED.model_copy(update={"min_support": 0.05}))
    verdict = await case.run("Where?", checker=ScriptedChecker(answerable=probability))
    assert (verdict["status"], verdict["support"].get("weak", False)) == ("answered", is_weak)


async def test_answer_below_the_minimum_is_refused_with_the_nearest_sentence() -> None:
    case = plain([reading("Isk")], [RAIN, TOWER], Settings(min_support=0.5))
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    assert (verdict["status"], verdict["citations"]) == ("unknown", [])
    assert verdict["text"] == "I found no answer. The nearest sentence: “The tower stands in Varn.” (Tower)."
    assert verdict["support"] == {"score": 0, "answerable": 0.1}
    assert case.state["notes"] == {}


@pytest.mark.parametrize("text", ["| Mass | 3.4 g |", "weighs", ""])
def test_a_refusal_shows_no_fragment(text: str) -> None:
    nearest = Citation(passage="p", document="d", title="Tower", quote=text, start=0, end=len(text))
    assert refuse({"score": 0.1, "answerable": 0.1}, [nearest])["text"] == "I found no answer."


def test_what_is_missing_is_not_the_question_itself() -> None:
    notes = [
        Note(question=asked, finding="", passages=[]) for asked in ("Who built it?", "Where is it?", "Who built it?")
    ]
    found = Note(question="When was it built?", finding="1911", passages=[])
    assert open_questions("Where is it?", [*notes, found]) == ["Who built it?"]
    text = refuse({"score": 0.1, "answerable": 0.1}, [], ["Who built it?"])["text"]
    assert text.splitlines() == ["I found no answer.", "What is missing:", "- Who built it?"]


@pytest.mark.parametrize(
    ("said", "settings", "services"),
    [
        (reading("Isk"), Settings(), {}),
        (reading("Isk"), Settings(), {"thresholds": FITTED}),
        (reading("Isk"), Settings(check_evidence=False), {"checker": ScriptedChecker()}),
        ({"answerable": False}, CHECKED, {"checker": ScriptedChecker()}),
    ],
    ids=["no checker", "fitted, but no checker", "switched off", "no answer"],
)
async def test_no_check(said: dict[str, Any], settings: Settings, services: dict[str, Any]) -> None:
    case = plain([said], [RAIN], settings)
    verdict = await case.run("Where?", **services)
    assert (case.nodes, "support" in verdict) == (["retrieve", "answer"], False)


@pytest.mark.parametrize(("settings", "is_checked"), [(Settings(), False), (CHECKED, True)])
async def test_other_languages_are_not_checked_by_default(settings: Settings, is_checked: bool) -> None:
    case = plain([reading("Varn")], [TOWER], settings)
    verdict = await case.run("Wo steht der alte Turm, den die Leute besuchen?", checker=ScriptedChecker())
    assert ("support" in verdict) == is_checked


@pytest.mark.parametrize(
    ("values", "thresholds", "end"),
    [
        ({}, {}, "Isk"),
        ({}, FITTED, "unknown"),
        ({"min_support": 0}, FITTED, "Isk"),
        ({"min_support": 0.5}, {}, "unknown"),
    ],
)
async def test_the_minimum_is_as_given_or_fitted(values: dict[str, Any], thresholds: Any, end: str) -> None:
    case = plain([reading("Isk")], [RAIN, TOWER], Settings(**values))
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker(), thresholds=thresholds)
    assert end in (verdict["status"], verdict["text"])
    assert "support" in verdict


async def test_run_with_a_check_needs_a_checker(store: Store) -> None:
    runs = RunService(store, Services(model=ScriptedModel([]), retriever=Shelf([])))
    with pytest.raises(UsageError, match="SLEUTH_CHECKER"):
        await runs.start(RunRequest(question="Where?", method="plain-rag", values={"check_evidence": True}))
    assert await store.threads.list_newest() == []


async def test_graph_with_a_check_needs_a_checker() -> None:
    with pytest.raises(UsageError, match="`checker` of the Context"):
        await plain([reading("Varn")], [TOWER], CHECKED).run("Where?")


async def test_support_of_a_finished_run_equals_that_of_the_check() -> None:
    case = plain([reading("Varn")], [RAIN, TOWER], CHECKED)
    verdict = await case.run("Where does the tower stand?", checker=ScriptedChecker())
    unchecked = {**case.state, "verdict": {name: each for name, each in verdict.items() if name != "support"}}
    assert await support_of_run(ScriptedChecker(), unchecked, case.archive) == verdict["support"]
    other = ScriptedChecker(answerable=0.1)
    assert await support_of_run(other, case.state, case.archive) == verdict["support"], "it is not read again"


@pytest.mark.parametrize(("words", "supported", "score"), [(13, 0.8, 0.8), (13, 0.1, 0.1), (12, 0.8, 0.0)])
async def test_long_answer_is_checked_as_a_statement(words: int, supported: float, score: float) -> None:
    found = await assess(ScriptedChecker(supported=supported), "Where?", "word " * words, [], [TOWER])
    assert found["score"] == score


async def test_least_supported_sentence_of_a_long_answer_counts() -> None:
    class Doubting(ScriptedChecker):
        def check(self, statement: str, passages: Any) -> Any:
            return replace(super().check(statement, passages), supported=0.9 if "Varn" in statement else 0.1)

    long = "The tower stands in Varn, as everyone who has been there knows. It was built by a king of old."
    found = await assess(Doubting(), "Where does the tower stand?", long, [], [TOWER])
    assert (found["score"], found.get("weak")) == (0.1, True)


@pytest.mark.parametrize(
    ("question", "answer", "is_weak"),
    [
        ("Where does the tower stand?", "Varn", False),
        ("Does the tower stand in Isk or Varn?", "Varn", True),
        ("Which player won more titles, Varn or Holt?", "Varn", True),
        ("Is it for Varn?", "Varn", False),
        ("Does the tower stand in Varn?", "yes", True),
    ],
)
async def test_what_the_checker_reads_by_chance_is_weak(question: str, answer: str, is_weak: bool) -> None:
    class Agreeing(ScriptedChecker):
        def read(self, question: str, passages: Any) -> Any:
            return replace(super().read(question, passages), yes=0.98 if answer == "yes" else 0.0, no=0.0)

    support = await assess(Agreeing(), question, answer, [cite_sentence(TOWER, 0)], [TOWER])
    assert support.get("weak", False) == is_weak
    assert "also" not in support


async def test_check_does_not_change_the_seeds_of_a_run() -> None:
    plainly, checked = (plain([reading("Varn")], [TOWER], settings) for settings in (Settings(), CHECKED))
    for case in (plainly, checked):
        await case.run("Where?", checker=ScriptedChecker())
    assert [request.sampling.seed for request in plainly.model.requests] == [
        request.sampling.seed for request in checked.model.requests
    ]


@pytest.mark.parametrize(
    "method",
    [each for each in METHODS.values() if issubclass(each.settings, CheckedSettings) and not each.delegates],
    ids=lambda each: each.name,
)
async def test_every_method_checks_its_answer(method: Method) -> None:
    chain = example("q03")
    settings = method.settings(check_evidence=True, min_support=0)
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
