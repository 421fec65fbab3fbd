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
from sleuth.studio.evaluation.calibration import calibrate, fit
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.settings import Settings

TOWNS = {f"town{at}": f"The mayor of Town {at} is Person {at}." for at in range(8)}
"""The model has read the first four rightly, and is sure of them."""


def rows(answers: int = 8) -> list[dict[str, Any]]:
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
        assert (report["right"], report["wrong"], report["auroc"]) == (4, 4, 1.0)
        kept = fitted_thresholds([place.home], lambda _: "scripted").get(VERIFY.prompt)
        assert kept == report["threshold"]
        assert kept and 1.4 < kept["value"] < 7.0
        assert "fitted for scripted on 8 answers, 4 of them right" in kept["by"]
        async with open_sleuth(place.model_copy(update={"model_url": proxy.url})) as sleuth:
            answer = await sleuth.ask("Who is the mayor of Town 5?", method="crp-rag", values={"samples": 1})
        assert answer.threshold == kept
        assert answer.status == "refused"
    assert (tmp_path / "out" / "report.json").stat().st_size > 100


async def test_what_was_asked_is_not_asked_again(place: Settings, tmp_path: Path) -> None:
    questions = write_questions(tmp_path, *rows())
    async with proxying(Scripted(script)) as proxy:
        first = await run(place, proxy, questions, tmp_path / "out")
        sent = len(proxy.calls)
        assert await run(place, proxy, questions, tmp_path / "out") == first
        assert len(proxy.calls) == sent
        with pytest.raises(UsageError, match="differs in: probes"):
            await run(place, proxy, write_questions(tmp_path, *rows()[:2]), tmp_path / "out")


def test_the_threshold_lies_between_what_parts_cleanly() -> None:
    fitted = fit([1.1, 1.2, 1.4, 1.5], [2.1, 3.0, 9.0, 9.5])
    assert fitted.threshold == pytest.approx(1.8)
    assert (fitted.auroc, fitted.right, fitted.wrong) == (1.0, 4, 4)
    assert fitted.p == pytest.approx(2 / 70)  # both orders of the 70 choices of four among eight
    assert fitted.is_predictive


def test_it_keeps_the_largest_share_of_the_right_less_that_of_the_wrong() -> None:
    fitted = fit([1.1, 1.2, 1.3, 5.0], [1.15, 2.0, 3.0, 4.0])
    assert fitted.threshold == pytest.approx((1.3 + 2.0) / 2)
    # Of the 16 pairs of a right and a wrong answer, those in which the right one is the surer one.
    assert fitted.auroc == pytest.approx((4 + 3 + 3 + 0) / 16)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param([1.0 + at / 10 for at in range(20)], [1.05 + at / 10 for at in range(20)], id="no difference"),
        pytest.param([2.0 + at / 10 for at in range(20)], [1.0 + at / 100 for at in range(20)], id="wrong are surer"),
        pytest.param([1.0, 1.1], [9.0, 9.1], id="too few"),
    ],
)
def test_perplexity_without_evidence_is_not_predictive(right: list[float], wrong: list[float]) -> None:
    assert not fit(right, wrong).is_predictive


@pytest.mark.parametrize(("right", "wrong"), [([1.0], []), ([], [1.0, 2.0]), ([], [])])
def test_both_kinds_are_needed(right: list[float], wrong: list[float]) -> None:
    with pytest.raises(UsageError, match=f"{len(right)} right and {len(wrong)} wrong.*sleuth doctor"):
        fit(right, wrong)
