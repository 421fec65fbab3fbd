"""One calibration: probes asked of CRP-RAG's verifier as durable runs, a threshold fitted on them, a report of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from sleuth import prompts
from sleuth.agents.roles.judging import VERIFY
from sleuth.graphs.core import Threshold, keep
from sleuth.graphs.methods.crp_rag import SOURCE
from sleuth.studio.client import Sleuth, last_answer, open_sleuth
from sleuth.studio.evaluation.calibration.fit import Fit, Measured, fit
from sleuth.studio.evaluation.calibration.probes import Probe, probes
from sleuth.studio.evaluation.data import read_questions, sample
from sleuth.studio.evaluation.reporting import Block, Heading, Paragraph, Picture, Table, svg, to_html, to_markdown
from sleuth.studio.evaluation.running import open_folder
from sleuth.studio.evaluation.scoring import contained
from sleuth.tools.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OnProgress = Callable[[int, int], None]
"""How many probes have been asked, of how many."""

METHOD = "crp-rag"
ALONE = {"shortcut": True, "perplexity_threshold": 1e9}
"""Settings under which a probe is a step of its own: searched for, summed up, verified, and whatever is said holds."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What is asked of one calibration."""

    paths: tuple[Path, ...]
    out: Path
    limit: int | None = None
    seed: int = 0


async def calibrate(settings: Settings, wanted: Calibration, *, on_progress: OnProgress) -> dict[str, Any]:
    """Fits the threshold for the verifier's model, keeps it where perplexity tells anything, and returns the report.

    Killed, the same command goes on in the same folder.

    Raises:
        UsageError: the questions cannot be read, or their answers are all right or all wrong.
        ModelError: no model server answers, or it gives no log-probabilities.
    """
    files = read_questions(wanted.paths)
    asked = probes(sample([each for file in files for each in file.questions], wanted.limit, seed=wanted.seed))
    async with open_folder(wanted.out) as folder:
        here = settings.model_copy(update={"runs": folder.path})
        async with open_sleuth(here, command="sleuth calibrate") as sleuth:
            await sleuth.library.require_documents()
            server = {"url": settings.model_url, "model": settings.model, "models": settings.models}
            await folder.settle({"probes": [asdict(probe) for probe in asked], **server, "prompt": await _version()})
            measured = await _measure(sleuth, asked, on_progress)
        found = await asyncio.to_thread(fit, measured, seed=wanted.seed)
        model = next(each.model for each in measured if each.perplexity is not None)
        threshold = _threshold(found, model)
        if found.tells:
            await asyncio.to_thread(keep, settings.home, model, VERIFY.prompt, threshold)
        report = {
            "model": model,
            "prompt": {VERIFY.prompt: await _version()},
            **asdict(found),
            "best": found.threshold,
            "threshold": threshold if found.tells else None,
            "unmeasured": sum(each.perplexity is None for each in measured),
            "questions": [{"path": file.path, "sha256": file.sha256} for file in files],
        }
        blocks = await asyncio.to_thread(_blocks, found, report)
        await folder.write("report.md", to_markdown(blocks))
        await folder.write("report.html", to_html(blocks))
        await folder.write_lines("probes.jsonl", [asdict(each) for each in measured])
        await folder.write("report.json", to_json(report, indent=2).decode() + "\n")
        return report


async def _version() -> str:
    await prompts.read(VERIFY.prompt)
    return prompts.load(VERIFY.prompt).version


async def _measure(sleuth: Sleuth, asked: Sequence[Probe], on_progress: OnProgress) -> list[Measured]:
    """As many side by side as calls may be in flight."""
    slots, done = asyncio.Semaphore(sleuth.settings.concurrency), 0

    async def one(probe: Probe) -> Measured:
        nonlocal done
        async with slots:
            measured = await _ask(sleuth, probe)
        done += 1
        on_progress(done, len(asked))
        return measured

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(probe)) for probe in asked]
    return [task.result() for task in tasks]


async def _ask(sleuth: Sleuth, probe: Probe) -> Measured:
    """A run of its own for each probe, found again by the probe's text."""
    runs, id = sleuth.runs, f"probe-{sha256(probe.question.encode()).hexdigest()[:16]}"
    if not await runs.store.threads.exists(id):
        await runs.start(probe.question, METHOD, values=ALONE, thread=id)
    await last_answer(runs.run(id))
    thread = await runs.store.threads.get(id)
    state = (await runs.graph(thread).aget_state(runs.config(thread))).values
    verified = state["verified"].get(SOURCE)
    answer, perplexity = (verified["answer"], verified["perplexity"]) if verified else ("", None)
    return Measured(
        question=probe.question,
        answer=answer,
        perplexity=perplexity,
        right=bool(answer and probe.answers and contained(answer, probe.answers)),
        model=next((call["model"] for call in state["calls"].values() if call["role"] == VERIFY.name), ""),
    )


def _threshold(found: Fit, model: str) -> Threshold:
    day = datetime.now(UTC).date().isoformat()
    by = f"fitted for {model} on {found.right + found.wrong} answers, {found.right} of them right ({day})"
    return Threshold(value=round(found.threshold, 4), by=by)


def _blocks(found: Fit, report: dict[str, Any]) -> list[Block]:
    """What a person reads of it."""
    low, high = found.interval
    chosen = next(point for point in found.curve if point.threshold == found.threshold)
    verdict = (
        f"Below a perplexity of {found.threshold:.3f} lie {chosen.right_kept:.0%} of the right answers and "
        f"{chosen.wrong_kept:.0%} of the wrong ones."
    )
    kept = "It is kept for this model." if found.tells else "It is not kept: the interval has chance (0.5) in it."
    rows = [("threshold", "right answers below it", "wrong answers below it")]
    step = max(1, len(found.curve) // 20)
    rows += [
        (f"{point.threshold:.3f}", f"{point.right_kept:.1%}", f"{point.wrong_kept:.1%}")
        for point in found.curve[::step]
    ]
    return [
        Heading(1, f"Perplexity of {report['model']}"),
        Paragraph(
            f"{found.right} right and {found.wrong} wrong answers; {report['unmeasured']} could not be measured."
        ),
        Paragraph(f"Area under the curve {found.auroc:.3f} (95 % from {low:.3f} to {high:.3f}; chance gives 0.5)."),
        Paragraph(f"{verdict} {kept}", label=True),
        Picture(svg(lambda axes: _draw(axes, found), ""), "Right answers kept against wrong answers kept."),
        Table(rows),
    ]


def _draw(axes: "Axes", found: Fit) -> None:
    axes.plot([point.wrong_kept for point in found.curve], [point.right_kept for point in found.curve], marker=".")
    axes.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
    chosen = next(point for point in found.curve if point.threshold == found.threshold)
    axes.plot(chosen.wrong_kept, chosen.right_kept, "o", color="C1")
    axes.annotate(
        f"{found.threshold:.3f}", (chosen.wrong_kept, chosen.right_kept), xytext=(8, -12), textcoords="offset points"
    )
    axes.set(xlabel="wrong answers below the threshold", ylabel="right answers below the threshold")
