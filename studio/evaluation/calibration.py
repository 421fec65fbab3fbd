"""One calibration: probes asked of CRP-RAG's verifier as durable runs, a threshold fitted on them, a report of it."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
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
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

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
        for number, step in enumerate(steps, start=1):
            subject, _, relation = step.question.partition(" >> ")  # MuSiQue
            asked = f"What is the {relation} of {subject}?" if relation else step.question
            asked = re.sub(r"#([1-9])", lambda match: steps[int(match[1]) - 1].answer, asked)  # noqa: B023
            found[asked] = tuple(dict.fromkeys((step.answer, *(right if number == len(steps) else ()))))
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
    def is_predictive(self) -> bool:
        """True if the interval of the area is above chance."""
        return self.interval[0] > 0.5


def fit(measured: Sequence[MeasuredAnswer]) -> Fit:
    """Return how low perplexity predicts right answers; Youden's index selects the threshold.

    The threshold is halfway between neighboring perplexities. The interval is that of Hanley and McNeil (1982).

    Raises:
        UsageError: all answers are right, or all are wrong; or none has a perplexity.
    """
    known = [(each.right, each.perplexity) for each in measured if each.perplexity is not None]
    if not known:
        raise UsageError(
            "No answer has a perplexity: nothing was found for the questions, or the model server gives no "
            "log-probabilities (check with `sleuth doctor`)."
        )
    right, wrong = (
        np.array([perplexity for is_right, perplexity in known if is_right is side]) for side in (True, False)
    )
    if not (len(right) and len(wrong)):
        raise UsageError(
            f"All {len(known)} answers are {'right' if len(right) else 'wrong'}: a threshold is fitted on both. "
            "Take more questions, some that the documents answer and some that they do not."
        )
    values = np.unique([*right, *wrong])
    kept = {float(at): ((right < at).mean(), (wrong < at).mean()) for at in (values[:-1] + values[1:]) / 2}
    kept[2 * float(values[-1])] = (np.float64(1), np.float64(1))
    threshold = max(kept, key=lambda at: kept[at][0] - kept[at][1])
    area = float((np.sign(wrong[None] - right[:, None]) / 2 + 0.5).mean())
    of_right, of_wrong = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    parts = area * (1 - area) + (len(right) - 1) * of_right + (len(wrong) - 1) * of_wrong
    spread = 1.96 * sqrt(max(parts, 0.0) / (len(right) * len(wrong)))
    return Fit(
        threshold=threshold,
        right_kept=float(kept[threshold][0]),
        wrong_kept=float(kept[threshold][1]),
        auroc=area,
        interval=(max(area - spread, 0.0), min(area + spread, 1.0)),
        right=len(right),
        wrong=len(wrong),
    )


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
        found = await asyncio.to_thread(fit, measured)
        model = next(each.model for each in measured if each.perplexity is not None)
        day = datetime.now(UTC).date().isoformat()
        by = f"fitted for {model} on {found.right + found.wrong} answers, {found.right} of them right ({day})"
        threshold = Threshold(value=round(found.threshold, 4), by=by)
        if found.is_predictive:
            await asyncio.to_thread(store_threshold, settings.home, model, VERIFY.prompt, threshold)
        report = {
            "model": model,
            "prompt": {VERIFY.prompt: version},
            **asdict(found),
            "threshold": threshold if found.is_predictive else None,
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
