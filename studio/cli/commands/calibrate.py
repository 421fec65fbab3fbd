"""`sleuth calibrate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.studio.cli.app import run_async
from sleuth.studio.console.output import JsonOption, activity, emit
from sleuth.studio.evaluation.calibration import calibrate
from sleuth.tools.settings import Settings


@run_async
async def calibrate_command(
    questions: Annotated[list[Path], typer.Argument(help="JSON Lines files of questions with answers.")],
    *,
    out: Annotated[Path, typer.Option(help="Output folder. Rerun the same command to resume.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions to sample per file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit CRP-RAG's perplexity threshold for the model, on questions with known answers."""
    with activity("Asking") as show:

        def on_progress(done: int, total: int) -> None:
            show(f"Asked {done} of {total}")

        report = await calibrate(Settings(), questions, out=out, on_progress=on_progress, limit=limit, seed=seed)
    emit(report, as_json, _in_words(report, out))


def _in_words(report: dict[str, Any], out: Path) -> str:
    measured = f"{report['right']} right and {report['wrong']} wrong answers of {report['model']}"
    area = f"area under the ROC curve {report['auroc']:.3f} (chance: 0.5, p = {report['p']:.4f})"
    if report["threshold"]:
        outcome = f"Threshold {report['threshold']['value']:.3f} is stored for this model."
    else:
        outcome = (
            "Perplexity does not separate right from wrong answers of this model: the default threshold is unchanged."
        )
    return f"{measured}; {area}.\n{outcome}\nReport: {out / 'report.json'}"
