"""A threshold fitted against a model server over HTTP, and what becomes of it in later runs."""

from pathlib import Path
from typing import Any

import pytest
from entries import entry
from json_lines import write_questions
from scripted_backend import Asked, Proxy, Scripted, Sure, proxying

from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core.thresholds import fitted_thresholds
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.studio.evaluation.calibration import MeasuredAnswer, calibrate, fit
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.settings import Settings

TOWNS = {f"town{at}": f"The mayor of Town {at} is Person {at}." for at in range(6)}
"""The model has read the first four rightly, and is sure of them."""


def rows(answers: int = 6) -> list[dict[str, Any]]:
    asked = [{"id": name, "question": f"Who is the mayor of Town {at}?"} for at, name in enumerate(TOWNS)]
    return [{**row, "answer": f"Person {at}" if at < answers else ""} for at, row in enumerate(asked)]


def script(asked: Asked) -> Any:
    match asked.prompt:
        case "aggregator/aggregate":
            return {"knowledge": "There is a mayor.", "citations": []}
        case "verifier/verify":
            at = int(asked.after("Question: ").rstrip("?").rpartition(" ")[2])
            return Sure(f"Person {at}", 1.1 + at / 10) if at < 4 else Sure("Person 99", 3.0 + at)
    return {"answer": "somebody"}


@pytest.fixture
async def place(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", embedder="none")
    async with await Collection.open(settings) as library:
        await Ingestion(library).put([entry(name, text, title=name) for name, text in TOWNS.items()])
    return settings


async def run(place: Settings, proxy: Proxy, questions: Path, out: Path) -> dict[str, Any]:
    settings = place.model_copy(update={"model_url": proxy.url})
    return await calibrate(settings, [questions], out=out, on_progress=lambda done, total: None)


async def test_discriminating_threshold_is_stored_and_named_in_later_answers(place: Settings, tmp_path: Path) -> None:
    async with proxying(Scripted(script)) as proxy:
        report = await run(place, proxy, write_questions(tmp_path, *rows()), tmp_path / "out")
        assert (report["right"], report["wrong"], report["auroc"]) == (4, 2, 1.0)
        kept = fitted_thresholds([place.home], lambda _: "scripted").get(VERIFY.prompt)
        assert kept == report["threshold"]
        assert kept and 1.4 < kept["value"] < 7.0
        assert "fitted for scripted on 6 answers, 4 of them right" in kept["by"]
        async with open_sleuth(place.model_copy(update={"model_url": proxy.url})) as sleuth:
            answer = await sleuth.ask("Who is the mayor of Town 5?", method="crp-rag", values={"samples": 1})
        assert answer.threshold == kept
        assert answer.status == "refused"
    for name in ("report.json", "probes.jsonl"):
        assert (tmp_path / "out" / name).stat().st_size > 100


async def test_what_was_asked_is_not_asked_again(place: Settings, tmp_path: Path) -> None:
    questions = write_questions(tmp_path, *rows())
    async with proxying(Scripted(script)) as proxy:
        first = await run(place, proxy, questions, tmp_path / "out")
        sent = len(proxy.calls)
        assert await run(place, proxy, questions, tmp_path / "out") == first
        assert len(proxy.calls) == sent
        with pytest.raises(UsageError, match="differs in: probes"):
            await run(place, proxy, write_questions(tmp_path, *rows()[:2]), tmp_path / "out")


def measured(right: list[float], wrong: list[float]) -> list[MeasuredAnswer]:
    return [
        MeasuredAnswer(question="?", answer="x", perplexity=perplexity, right=is_right)
        for is_right, each in ((True, right), (False, wrong))
        for perplexity in each
    ]


def test_the_threshold_lies_between_what_parts_cleanly() -> None:
    found = fit(measured([1.1, 1.2, 1.4], [2.0, 3.0, 9.0]))
    assert found.threshold == pytest.approx(1.7)
    assert (found.auroc, found.interval) == (1.0, (1.0, 1.0))
    assert (found.right, found.wrong) == (3, 3)
    assert found.is_predictive


def test_it_keeps_the_largest_share_of_the_right_less_that_of_the_wrong() -> None:
    found = fit(measured([1.1, 1.2, 1.3, 5.0], [1.15, 2.0, 3.0, 4.0]))
    assert found.threshold == pytest.approx((1.3 + 2.0) / 2)
    assert (found.right_kept, found.wrong_kept) == (0.75, 0.25)
    # Of the 16 pairs of a right and a wrong answer, those in which the right one is the surer one.
    assert found.auroc == pytest.approx((4 + 3 + 3 + 0) / 16)


def test_interval_of_uninformative_perplexity_includes_chance() -> None:
    found = fit(measured([1.0 + at / 10 for at in range(20)], [1.05 + at / 10 for at in range(20)]))
    assert found.interval[0] < 0.5 < found.interval[1]
    assert not found.is_predictive
    assert found == fit(measured([1.0 + at / 10 for at in range(20)], [1.05 + at / 10 for at in range(20)]))


def test_what_was_not_measured_does_not_count() -> None:
    unmeasured = MeasuredAnswer(question="?", answer="", perplexity=None, right=False)
    assert fit([*measured([1.1], [2.0]), unmeasured]).wrong == 1


@pytest.mark.parametrize(("right", "wrong", "are"), [([1.0], [], "right"), ([], [1.0, 2.0], "wrong")])
def test_both_kinds_are_needed(right: list[float], wrong: list[float], are: str) -> None:
    with pytest.raises(UsageError, match=f"answers are {are}"):
        fit(measured(right, wrong))


def test_without_perplexities_there_is_nothing_to_fit() -> None:
    with pytest.raises(UsageError, match="No answer has a perplexity"):
        fit([MeasuredAnswer(question="?", answer="x", perplexity=None, right=True)])
