"""One calibration: probes asked of CRP-RAG's verifier as durable runs, a threshold fitted on them, a report of it."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sleuth import prompts
from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.thresholds import store_threshold
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.client.sleuth import Sleuth, last_answer, open_sleuth
from sleuth.studio.evaluation.data import GoldQuestion, read_questions, sample
from sleuth.studio.evaluation.run_folder import REPORT, settle_plan, write
from sleuth.studio.evaluation.runs import process
from sleuth.studio.evaluation.scoring import contained
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

METHOD = "crp-rag"
ALONE = {"shortcut": True, "perplexity_threshold": 1e9}
"""Settings under which a probe is a step of its own: retrieved, summarized, verified, and always accepted."""


def probes(questions: Iterable[GoldQuestion]) -> dict[str, tuple[str, ...]]:
    """Return the texts to ask with their right answers: each step of a question, or the question if it has no steps.

    Earlier answers are filled into the steps. A question without an answer has no right one.
    """
    accepted: dict[str, tuple[str, ...]] = {}
    for question in questions:
        right = tuple(answer for answer in question.answers if answer)
        steps = question.decomposition if right else ()
        earlier = {f"#{number}": step.answer for number, step in enumerate(steps, start=1)}
        for step in steps:
            accepted[re.sub(r"#\d+", lambda match: earlier.get(match[0], match[0]), step.question)] = (step.answer,)  # noqa: B023
        if not steps:
            accepted[question.question] = right
    return accepted


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The threshold that best separates right from wrong answers, and how well perplexity does so.

    `auroc` is the area under the ROC curve (chance: 0.5), `p` that of the two-sided Mann-Whitney test against chance.
    """

    threshold: float
    auroc: float
    p: float
    right: int
    wrong: int

    @property
    def is_predictive(self) -> bool:
        """True if the perplexity of right answers is lower, beyond chance."""
        return self.auroc > 0.5 and self.p < 0.05


def fit(right: Sequence[float], wrong: Sequence[float]) -> Fit:
    """Return how low perplexity predicts right answers; Youden's index selects the threshold.

    The index is the Kolmogorov-Smirnov statistic. The threshold is halfway to the next perplexity.

    Raises:
        UsageError: there are no right answers, or no wrong ones.
    """
    from scipy.stats import ks_2samp, mannwhitneyu

    if not (right and wrong):
        raise UsageError(
            f"{len(right)} right and {len(wrong)} wrong answers have a perplexity: a threshold is fitted on both. Take "
            "more questions, some that the documents answer and some that they do not. If no answer has a perplexity, "
            "check with `sleuth doctor` that the model server gives log-probabilities."
        )
    test = mannwhitneyu(wrong, right)
    best = float(ks_2samp(right, wrong, alternative="greater", method="asymp").statistic_location)
    return Fit(
        threshold=(best + min((value for value in (*right, *wrong) if value > best), default=3 * best)) / 2,
        auroc=float(test.statistic) / (len(right) * len(wrong)),
        p=float(test.pvalue),
        right=len(right),
        wrong=len(wrong),
    )


async def calibrate(
    settings: Settings,
    paths: Sequence[Path],
    *,
    out: Path,
    on_progress: Callable[[int, int], None],
    limit: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Fit the threshold for the verifier's model, store it if perplexity is predictive, and return the report.

    An interrupted calibration is resumed by the same command.

    Raises:
        UsageError: the questions cannot be read, or their answers are all right or all wrong.
        ModelError: no model server answers.
    """
    files = read_questions(paths)
    accepted = probes(sample([question for file in files for question in file.questions], limit, seed=seed))
    async with hold(out, "exclusive", command="sleuth calibrate"):
        async with open_sleuth(settings.model_copy(update={"runs": out}), command="sleuth calibrate") as sleuth:
            await sleuth.collection.require_documents()
            version = (await prompts.versions())[VERIFY.prompt]
            server = {"url": settings.model_url, "model": settings.model, "models": settings.models}
            probed = [{"question": question, "answers": right} for question, right in accepted.items()]
            await asyncio.to_thread(settle_plan, out, {"probes": probed, **server, "prompt": version})
            answers: dict[str, tuple[str, float, bool] | None] = {}

            async def work(question: str) -> None:
                answers[question] = await _ask(sleuth, question, accepted[question])
                on_progress(len(answers), len(accepted))

            await process(accepted, work, settings.concurrency)
        verified = [answer for answer in answers.values() if answer]
        right, wrong = ([value for _, value, is_right in verified if is_right is side] for side in (True, False))
        fitted = await asyncio.to_thread(fit, right, wrong)
        model, day = verified[0][0], datetime.now(UTC).date().isoformat()
        by = f"fitted for {model} on {len(verified)} answers, {len(right)} of them right ({day})"
        threshold = Threshold(value=round(fitted.threshold, 4), by=by) if fitted.is_predictive else None
        if threshold:
            await asyncio.to_thread(store_threshold, settings.home, model, VERIFY.prompt, threshold)
        report = {
            "model": model,
            "prompt": {VERIFY.prompt: version},
            **asdict(fitted),
            "threshold": threshold,
            "unmeasured": len(accepted) - len(verified),
            "questions": [{"path": file.path, "sha256": file.sha256} for file in files],
        }
        await asyncio.to_thread(write, out / REPORT, to_json(report, indent=2).decode() + "\n")
        return report


async def _ask(sleuth: Sleuth, question: str, accepted: tuple[str, ...]) -> tuple[str, float, bool] | None:
    """Return the model's name, the perplexity of its answer, and whether that is right; None without a perplexity.

    The run's id is derived from the question, so that a rerun resumes it.
    """
    runs, id = sleuth.runs, f"probe-{sha256(question.encode()).hexdigest()[:16]}"
    if not await runs.store.threads.exists(id):
        await runs.start(RunRequest(question=question, method=METHOD, values=ALONE, thread=id))
    await last_answer(runs.run(id))
    state = (await runs.state(await runs.store.threads.get(id))).values
    verified = state["verified"].get(SOURCE)
    if not verified or verified["perplexity"] is None:
        return None
    model = next(call["model"] for call in state["calls"].values() if call["role"] == VERIFY.name)
    answer = verified["answer"]
    return model, verified["perplexity"], bool(answer and accepted and contained(answer, accepted))
