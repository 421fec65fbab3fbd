"""One calibration: probes asked of CRP-RAG's verifier as durable runs, a threshold fitted on them, a report of it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from sleuth import prompts
from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.thresholds import store_threshold
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.client.sleuth import Sleuth, last_answer, open_sleuth
from sleuth.studio.evaluation.data import GoldQuestion, read_questions, sample
from sleuth.studio.evaluation.run_folder import REPORT, settle_plan, write, write_lines
from sleuth.studio.evaluation.runs import process
from sleuth.studio.evaluation.scoring import contained
from sleuth.studio.simulation.wording import ask_relation, fill_references, split_relation
from sleuth.tools.errors import UsageError
from sleuth.tools.optional_imports import extra
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

RESAMPLES = 1000
"""Number of bootstrap resamples."""

METHOD = "crp-rag"
ALONE = {"shortcut": True, "perplexity_threshold": 1e9}
"""Settings under which a probe is a step of its own: retrieved, summarized, verified, and always accepted."""

OnProgress = Callable[[int, int], None]
"""Callback with the number of finished probes and the total."""


def probes(questions: Iterable[GoldQuestion]) -> dict[str, tuple[str, ...]]:
    """Return what is asked with what counts as right (nothing does where there is no answer).

    That is each step, with the answers of earlier steps filled in, and each question without steps.
    """
    found: dict[str, tuple[str, ...]] = {}
    for question in questions:
        steps, right = question.decomposition, tuple(answer for answer in question.answers if answer)
        if not steps or not right:
            found[question.question] = right
            continue
        answers = dict(enumerate((step.answer for step in steps), start=1))
        for number, step in enumerate(steps, start=1):
            relation = split_relation(step.question)
            asked = fill_references(ask_relation(*relation) if relation else step.question, answers)
            accepted = (step.answer, *right) if number == len(steps) else (step.answer,)
            found[asked] = tuple(dict.fromkeys(accepted))
    return found


@dataclass(frozen=True, kw_only=True)
class MeasuredAnswer:
    """One question answered by a model from its knowledge alone; `perplexity` is None where there was none."""

    question: str
    answer: str
    perplexity: float | None
    right: bool
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The area under the ROC curve with a 95 % interval, and the threshold with the largest difference of shares.

    `right_kept` and `wrong_kept` are the shares of right and of wrong answers whose perplexity is below the threshold.
    Chance gives an area of 0.5: then perplexity does not predict correctness.
    """

    threshold: float
    right_kept: float
    wrong_kept: float
    auroc: float
    interval: tuple[float, float]
    right: int
    wrong: int

    @property
    def tells(self) -> bool:
        """True if the interval of the area is above chance."""
        return self.interval[0] > 0.5


def fit(measured: Sequence[MeasuredAnswer], *, seed: int = 0) -> Fit:
    """Return how low perplexity predicts right answers; Youden's index selects the threshold.

    The threshold is halfway between neighboring perplexities.

    Raises:
        UsageError: all answers are right, or all are wrong; or none has a perplexity.
    """
    with extra("eval", "A calibration"):
        from sklearn.metrics import roc_auc_score, roc_curve
    known = [(each.right, each.perplexity) for each in measured if each.perplexity is not None]
    if not known:
        raise UsageError(
            "No answer has a perplexity: nothing was found for the questions, or the model server gives no "
            "log-probabilities (check with `sleuth doctor`)."
        )
    right = np.array([each for each, _ in known], dtype=bool)
    sure = -np.array([perplexity for _, perplexity in known], dtype=float)
    if right.all() or not right.any():
        raise UsageError(
            f"All {len(right)} answers are {'right' if right.all() else 'wrong'}: a threshold is fitted on both. "
            "Take more questions, some that the documents answer and some that they do not."
        )
    wrong_kept, right_kept, bounds = roc_curve(right, sure, drop_intermediate=False)
    best = int(np.argmax(right_kept - wrong_kept))  # the first, which has the lowest threshold
    perplexities = [*-bounds, 2 * -bounds[-1]]
    threshold = (perplexities[best] + perplexities[best + 1]) / 2 if best else 1.0  # the first point keeps nothing
    return Fit(
        threshold=float(threshold),
        right_kept=float(right_kept[best]),
        wrong_kept=float(wrong_kept[best]),
        auroc=float(roc_auc_score(right, sure)),
        interval=area_interval(sure[right], sure[~right], seed),
        right=int(right.sum()),
        wrong=int((~right).sum()),
    )


def area_interval(positive: NDArray[np.float64], negative: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the area, with as many of each class in each resample."""
    from scipy.stats import mannwhitneyu

    drawn = np.random.default_rng(seed)
    above, below = (drawn.choice(side, (RESAMPLES, side.size)) for side in (positive, negative))
    areas = mannwhitneyu(above, below, axis=1, method="asymptotic").statistic / (above.shape[1] * below.shape[1])
    low, high = np.percentile(areas, [2.5, 97.5])
    return float(low), float(high)


async def calibrate(
    settings: Settings,
    paths: Sequence[Path],
    *,
    out: Path,
    on_progress: OnProgress,
    limit: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Fit the threshold for the verifier's model, store it if perplexity is predictive, and return the report.

    An interrupted calibration is resumed by the same command.

    Raises:
        UsageError: the questions cannot be read, or their answers are all right or all wrong.
        ModelError: no model server answers, or it gives no log-probabilities.
    """
    files = read_questions(paths)
    asked = probes(sample([each for file in files for each in file.questions], limit, seed=seed))
    async with hold(out, "exclusive", command="sleuth calibrate"):
        here = settings.model_copy(update={"runs": out})
        async with open_sleuth(here, command="sleuth calibrate") as sleuth:
            await sleuth.collection.require_documents()
            server = {"url": settings.model_url, "model": settings.model, "models": settings.models}
            probed = [{"question": question, "answers": right} for question, right in asked.items()]
            version = (await prompts.versions())[VERIFY.prompt]
            plan = {"probes": probed, **server, "prompt": version}
            await asyncio.to_thread(settle_plan, out, plan)
            answers: dict[str, MeasuredAnswer] = {}

            async def work(question: str) -> None:
                answers[question] = await _ask(sleuth, question, asked[question])
                on_progress(len(answers), len(asked))

            await process(asked, work, settings.concurrency)
        measured = [answers[question] for question in asked]
        found = await asyncio.to_thread(fit, measured, seed=seed)
        model = next(each.model for each in measured if each.perplexity is not None)
        day = datetime.now(UTC).date().isoformat()
        by = f"fitted for {model} on {found.right + found.wrong} answers, {found.right} of them right ({day})"
        threshold = Threshold(value=round(found.threshold, 4), by=by)
        if found.tells:
            await asyncio.to_thread(store_threshold, settings.home, model, VERIFY.prompt, threshold)
        report = {
            "model": model,
            "prompt": {VERIFY.prompt: version},
            **asdict(found),
            "threshold": threshold if found.tells else None,
            "unmeasured": sum(each.perplexity is None for each in measured),
            "questions": [{"path": file.path, "sha256": file.sha256} for file in files],
        }
        await asyncio.to_thread(write_lines, out / "probes.jsonl", map(asdict, measured))
        await asyncio.to_thread(write, out / REPORT, to_json(report, indent=2).decode() + "\n")
        return report


async def _ask(sleuth: Sleuth, question: str, accepted: tuple[str, ...]) -> MeasuredAnswer:
    """Ask a question in a run of its own, whose id is derived from its text."""
    runs, id = sleuth.runs, f"probe-{sha256(question.encode()).hexdigest()[:16]}"
    if not await runs.store.threads.exists(id):
        await runs.start(RunRequest(question=question, method=METHOD, values=ALONE, thread=id))
    await last_answer(runs.run(id))
    thread = await runs.store.threads.get(id)
    state = (await runs.graph(thread).aget_state(runs.config(thread))).values
    verified = state["verified"].get(SOURCE)
    answer, perplexity = (verified["answer"], verified["perplexity"]) if verified else ("", None)
    return MeasuredAnswer(
        question=question,
        answer=answer,
        perplexity=perplexity,
        right=bool(answer and accepted and contained(answer, accepted)),
        model=next((call["model"] for call in state["calls"].values() if call["role"] == VERIFY.name), ""),
    )
