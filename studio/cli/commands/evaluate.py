"""`sleuth eval`: questions with known answers against search and methods."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sleuth.graphs.core import Budget
from sleuth.graphs.registry import METHODS
from sleuth.studio.cli.commands.ask import CallsOption, SecondsOption, TokensOption, pairs
from sleuth.studio.console import JsonOption, emit, progress_console
from sleuth.studio.evaluation import Evaluation
from sleuth.studio.evaluation.data import OracleParts, System
from sleuth.studio.evaluation.data.systems import systems
from sleuth.studio.evaluation.evaluate import evaluate
from sleuth.studio.evaluation.reporting import align_columns, comparison_table, label, methods_table, retrieval_table
from sleuth.studio.evaluation.reporting.compare import compare
from sleuth.studio.simulation import Simulation
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.search import find_mode
from sleuth.tools.settings import Profile, Settings

SHOWN = ("f1", "em", "refused", "support", "calls", "tokens")
"""Metrics in the terminal; the report has them all."""

PROFILES: dict[str, tuple[Profile, ...]] = {
    "default": ("default",),
    "paper": ("paper",),
    "both": ("default", "paper"),
}


def evaluate_command(
    questions: Annotated[list[Path] | None, typer.Argument(help="Questions in JSON Lines, one or more files.")] = None,
    *,
    methods: Annotated[str, typer.Option(help=f"Methods to run, or all: {','.join(METHODS)}.")] = "",
    retrieval: Annotated[str, typer.Option(help="Search modes to judge: keyword,dense,hybrid,graph,graph-ppr.")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder of the report; the same command goes on in it.")] = None,
    ablations: Annotated[str, typer.Option(help="Methods, or graph for graph search, less a part at a time.")] = "",
    ladder: Annotated[str, typer.Option(help="Methods run as far as they were built, step by step: hybrid-rag.")] = "",
    profile: Annotated[str | None, typer.Option(help="default, paper or both.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[METHOD.]KEY=VALUE", help="A setting of the methods; may be repeated."),
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=RATE,...|FILE.toml", help="No model: roles play from the gold, erring at these rates."
        ),
    ] = None,
    gold: Annotated[
        str, typer.Option(help="Roles played from the gold without error, and passages if search finds all of them.")
    ] = "",
    judge: Annotated[
        bool, typer.Option("--judge", help="Also let a model judge (SLEUTH_MODELS names its role).")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="So many questions of each file, drawn by the seed.")] = None,
    seed: Annotated[int, typer.Option(help="For the sample, the simulation and the statistics.")] = 0,
    max_calls: CallsOption = None,
    max_tokens: TokensOption = None,
    max_seconds: SecondsOption = None,
    compare_: Annotated[
        tuple[Path, Path] | None, typer.Option("--compare", metavar="A B", help="Two folders of evaluations.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge search and methods on questions with known answers; the budget is that of the whole evaluation."""
    if compare_:
        found = compare(*compare_)
        emit(found, as_json, comparison_table(found))
        return
    settings = Settings()
    graph_parts = "graph" in _names(ablations)
    chosen = list(METHODS) if methods.strip() == "all" else _names(methods)
    wanted = Evaluation(
        paths=tuple(questions or ()),
        out=out or Path(),
        modes=tuple(find_mode(name) for name in _names(f"{retrieval},graph" if graph_parts else retrieval)),
        graph_parts=graph_parts,
        systems=_systems(chosen, (_names(ablations), _names(ladder)), profile or settings.profile, pairs(set_ or [])),
        simulation=None if simulate is None else _simulation(simulate, seed),
        gold=OracleParts.parse(_names(gold)),
        judge=judge,
        budget=Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds),
        limit=limit,
        seed=seed,
    )
    _require_enough(wanted, out)
    with _progress() as show:
        report = asyncio.run(evaluate(settings, wanted, on_progress=show))
    emit(report, as_json, _in_words(report, wanted.out))


def _simulation(given: str, seed: int) -> Simulation:
    """Rates, or a file of parameters, whose own seed is replaced too."""
    if not given.endswith(".toml"):
        return Simulation.parse(given, seed=seed)
    return Simulation.from_toml(Path(given)).model_copy(update={"seed": seed})


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _systems(
    methods: list[str], parts: tuple[list[str], list[str]], profile: str, values: dict[str, str]
) -> tuple[System, ...]:
    if profile not in PROFILES:
        raise UnknownName("profile", profile, list(PROFILES), f"There are: {', '.join(PROFILES)}.")
    ablations, ladders = [name for name in parts[0] if name != "graph"], parts[1]
    return tuple(systems(methods, ablations=ablations, ladders=ladders, profiles=PROFILES[profile], values=values))


def _require_enough(wanted: Evaluation, out: Path | None) -> None:
    """Raises UsageError where something is missing, naming it."""
    if not wanted.paths:
        raise UsageError("Say what to ask: sleuth eval QUESTIONS.jsonl --methods par-rag --out FOLDER.")
    if not (wanted.modes or wanted.systems):
        raise UsageError(
            "Say what to judge: --methods plain-rag,par-rag, or --retrieval keyword,dense,hybrid, or both."
        )
    if out is None:
        raise UsageError("Say where the report goes: --out FOLDER.")
    if wanted.simulation and wanted.judge:
        raise UsageError("A simulation has no judge: leave out --judge, or --simulate.")
    if wanted.simulation and wanted.gold.names():
        raise UsageError("A simulation plays every role from the gold: leave out --gold, or --simulate.")
    if wanted.simulation and not wanted.systems:
        raise UsageError("--simulate plays the roles of methods: name some with --methods.")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """What is going on, how far it is, and how long it will take."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=progress_console()) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total, completed=done)
            bar.update(tasks[what], completed=done)

        yield show


def _in_words(report: dict[str, Any], out: Path) -> str:
    parts = [label(report)] if label(report) else []
    parts += [f"! {warning}" for warning in report["warnings"]]
    if "methods" in report:
        parts.append(align_columns(methods_table(report["methods"], SHOWN)))
    if "retrieval" in report:
        parts.append(align_columns(retrieval_table(report["retrieval"])))
    return "\n".join([*parts, f"The whole report: {out / 'report.html'}, and beside it report.md and report.json"])
