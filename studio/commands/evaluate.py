"""`sleuth eval`: questions with known answers against search and methods."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sleuth.studio.commands.documents import find_mode
from sleuth.studio.evaluation.evaluate import Evaluation, evaluate
from sleuth.studio.evaluation.report import aligned, retrieval_table
from sleuth.studio.output import JsonOption, emit, progress_console
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings


def evaluate_command(
    questions: Annotated[list[Path], typer.Argument(help="Questions in JSON Lines, one or more files.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the report; the same command goes on where it stopped.")],
    retrieval: Annotated[str, typer.Option(help="Search modes to judge: keyword,dense,hybrid,graph.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="So many questions of each file, drawn by the seed.")] = None,
    seed: Annotated[int, typer.Option(help="For the sample and the statistics.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Judge search on questions whose gold passages are known."""
    modes = tuple(find_mode(name) for name in _names(retrieval))
    if not modes:
        raise UsageError("Say what to judge: --retrieval keyword,dense,hybrid.")
    wanted = Evaluation(paths=tuple(questions), out=out, modes=modes, limit=limit, seed=seed)
    with _progress() as show:
        report = asyncio.run(evaluate(Settings(), wanted, on_progress=show))
    emit(report, as_json, _in_words(report, out))


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """What is going on, how far it is, and how long it will take."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=progress_console()) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield show


def _in_words(report: dict[str, Any], out: Path) -> str:
    warnings = [f"! {warning}" for warning in report["warnings"]]
    return "\n".join(
        [*warnings, aligned(retrieval_table(report["retrieval"])), f"The whole report: {out / 'report.md'}"]
    )
