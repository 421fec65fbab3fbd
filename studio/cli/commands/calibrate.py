"""`sleuth calibrate`: how sure a model has to be of an answer."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from sleuth.studio.console import JsonOption, activity, emit
from sleuth.studio.evaluation.calibration import Calibration, calibrate
from sleuth.studio.evaluation.running import provenance as record
from sleuth.tools.settings import Settings


def calibrate_command(
    questions: Annotated[list[Path], typer.Argument(help="Questions with answers in JSON Lines, one or more files.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder of the report; the same command goes on in it.")],
    limit: Annotated[int | None, typer.Option(min=1, help="So many questions of each file, drawn by the seed.")] = None,
    seed: Annotated[int, typer.Option(help="For the sample and the interval.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit CRP-RAG's perplexity threshold for the model, on questions of the collection whose answers are known."""
    record.require_packages()
    wanted = Calibration(paths=tuple(questions), out=out, limit=limit, seed=seed)
    with activity("Asking") as show:
        report = asyncio.run(
            calibrate(Settings(), wanted, on_progress=lambda done, total: show(f"Asked {done} of {total}"))
        )
    emit(report, as_json, _in_words(report, out))


def _in_words(report: dict[str, Any], out: Path) -> str:
    low, high = report["interval"]
    measured = f"{report['right']} right and {report['wrong']} wrong answers of {report['model']}"
    area = f"area under the curve {report['auroc']:.3f} (95 % from {low:.3f} to {high:.3f}; chance gives 0.5)"
    if report["threshold"]:
        outcome = f"Threshold {report['threshold']['value']:.3f} is kept for this model and used from now on."
    else:
        outcome = "Perplexity does not tell right from wrong with this model: nothing is kept, the default stays."
    return f"{measured}; {area}.\n{outcome}\nThe report: {out / 'report.html'}, and beside it report.md and report.json"
