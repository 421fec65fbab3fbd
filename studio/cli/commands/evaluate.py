"""`sleuth eval` and `sleuth questions`."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.service import RunService
from sleuth.studio.cli import options, run_options
from sleuth.studio.cli.app import run_async
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.studio.console.output import JsonOption, Listing, activity, counted, emit, progress_bars
from sleuth.studio.evaluation import Evaluation
from sleuth.studio.evaluation.data import systems
from sleuth.studio.evaluation.evaluate import evaluate
from sleuth.studio.evaluation.feedback import WITH_GOLD, WITHOUT_GOLD, export_feedback
from sleuth.studio.evaluation.question_maker import Kind, count_kind, make_questions, plan_questions, read_made
from sleuth.studio.evaluation.report import Rows, compare, difference_table, methods_table, retrieval_table
from sleuth.tools.errors import UsageError
from sleuth.tools.search import find_mode
from sleuth.tools.settings import Profile, Settings

TERMINAL_METRICS = ("f1", "em", "refused", "support", "calls", "tokens")
"""Metrics in the terminal; the report contains all."""
TERMINAL_MEANINGS = (
    "F1, EM, refused and support are percentages of the questions; support: a citation is of a gold passage, whether "
    "or not the answer is right. Calls and tokens are per question."
)

questions_app = typer.Typer(
    no_args_is_help=True, help="Write evaluation questions from the documents or from feedback."
)


@questions_app.command()
@run_async
async def make(
    *,
    number: Annotated[int, typer.Option("--n", min=1, max=100_000, help="Number of questions.")] = 50,
    out: Annotated[Path, typer.Option(help="Question file. Rerun the same command to resume.")] = Path(
        "questions.jsonl"
    ),
    multi: Annotated[float, typer.Option(min=0, max=1, help="Share of questions that need two passages.")] = 0.4,
    unanswerable: Annotated[float, typer.Option(min=0, max=1, help="Share of questions without an answer.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of the order of passages.")] = 0,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Write evaluation questions from the documents; a second pass checks each. Then run `sleuth eval` on the file."""
    settings, counts = options.settings_with(wait=wait), plan_questions(number, multi=multi, unanswerable=unanswerable)
    dropped: Counter[str] = Counter()
    await asyncio.to_thread(read_made, out)  # before a model server is needed
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    async with open_sleuth(settings, command="sleuth questions make") as sleuth:
        assert sleuth.runs.services
        model, limits = sleuth.runs.services.model, {"seed": seed, "concurrency": settings.concurrency}
        with activity("Writing questions") as show:
            async for row in make_questions(sleuth.collection, model, out, counts, budget=budget, **limits):
                dropped[row.get("reason", "")] += 1
                show(f"Written: {dropped['']} of {number}. Dropped: {dropped.total() - dropped['']}.")
    del dropped[""]
    rows = await asyncio.to_thread(read_made, out)
    written = {kind: count_kind(rows, kind) for kind in counts}
    result = {"file": str(out), "made": written, "wanted": counts, "dropped": dropped}
    emit(result, as_json, Text("\n".join(_counts_in_words(out, written, counts, dropped))))
    if not rows:
        raise typer.Exit(1)


@questions_app.command()
@run_async
async def feedback(
    *,
    out: Annotated[Path, typer.Option(help="Question file; new questions are appended.")] = Path("feedback.jsonl"),
    as_json: JsonOption = False,
) -> None:
    """Write the questions of rated runs: good answers as gold, bad ones with a comment without gold."""
    async with open_store(Settings()) as store:
        added, earlier = await export_feedback(RunService(store), out)
    good, bad = (sum(row["type"] == kind for row in added) for kind in (WITH_GOLD, WITHOUT_GOLD))
    lines = [f"{out}: {counted(len(added), 'question')} added, {good} with gold, {bad} without; {earlier} were there."]
    if bad:
        lines.append(f"The {bad} of type {WITHOUT_GOLD} have no answer yet: read the comment, then add `answer`.")
    if not added and not earlier:
        lines.append("No run has a rating yet. The page has thumbs below each answer.")
    result = {"file": str(out), "added": len(added), "with_gold": good, "without_gold": bad, "kept": earlier}
    emit(result, as_json, Text("\n".join(lines)))


def _counts_in_words(
    out: Path, written: Mapping[Kind, int], requested: Mapping[Kind, int], dropped: Counter[str]
) -> list[str]:
    total = sum(written.values())
    kinds = ", ".join(f"{written[kind]} of {count} {kind}" for kind, count in requested.items())
    lines = [f"{counted(total, 'question')} in {out}: {kinds}."]
    if dropped:
        lines.append(f"Dropped {counted(dropped.total(), 'candidate')}:")
        lines += [f"  {count} × {reason}" for reason, count in dropped.most_common()]
    if total < sum(requested.values()):
        lines.append(
            "There are fewer than requested. A larger model or budget, more documents or a rerun may give more."
        )
    if total:
        lines.append(f"Next: sleuth eval {out} --methods plain-rag,par-rag --out results/mine")
    return lines


@run_async
async def evaluate_command(
    context: typer.Context,
    questions: Annotated[list[Path] | None, typer.Argument(help="JSON Lines files of questions.")] = None,
    *,
    methods: Annotated[str, typer.Option(help=f"Methods to evaluate, or `all`: {','.join(METHODS)}.")] = "",
    retrieval: Annotated[
        str, typer.Option(help="Search modes to evaluate: keyword,dense,hybrid,graph,knowledge-graph.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Output folder. Rerun the same command to resume.")] = None,
    ablations: Annotated[str, typer.Option(help="Methods to ablate, one part at a time.")] = "",
    ladder: Annotated[
        str, typer.Option(help="Evaluate cumulative ablation stages of these methods (hybrid-rag only).")
    ] = "",
    profile: Annotated[
        Literal["default", "paper", "both"] | None, typer.Option(help="Default: SLEUTH_PROFILE.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[METHOD.]KEY=VALUE", help="A setting of the methods; may be repeated."),
    ] = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Also score answers with a model (role `judge` in SLEUTH_MODELS).")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions to sample per file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and the statistics.")] = 0,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    compare_: Annotated[
        tuple[Path, Path] | None, typer.Option("--compare", metavar="A B", help="Compare two output folders.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate search modes and methods on questions with known answers.

    The budget limits the whole evaluation.
    """
    if compare_:
        comparison = compare(*compare_)
        differing = ", ".join(comparison["differing"]) or "nothing"
        about = f"b = {comparison['b']}, a = {comparison['a']}; the two differ in: {differing}"
        table = _listing(difference_table(comparison["differences"]))
        emit(comparison, as_json, Group(about, *comparison["labels"], table))
        return
    settings = Settings()
    profiles: tuple[Profile, ...] = ("default", "paper") if profile == "both" else (profile or settings.profile,)
    chosen = list(METHODS) if methods.strip() == "all" else _names(methods)
    evaluation = Evaluation(
        paths=tuple(questions or ()),
        out=out or Path(),
        modes=tuple(find_mode(name) for name in _names(retrieval)),
        systems=tuple(
            systems(
                chosen,
                ablations=_names(ablations),
                ladders=_names(ladder),
                profiles=profiles,
                values=options.parse_pairs(set_),
            )
        ),
        players=context.obj,
        judge=judge,
        budget=Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds),
        limit=limit,
        seed=seed,
    )
    _check_complete(evaluation, out)
    with _progress() as show:
        report = await evaluate(settings, evaluation, on_progress=show)
    emit(report, as_json, _in_words(report, evaluation.out))


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _check_complete(evaluation: Evaluation, out: Path | None) -> None:
    """Raise UsageError if options are missing or conflict."""
    if not evaluation.paths:
        raise UsageError(
            "No questions were given. For example: sleuth eval QUESTIONS.jsonl --methods par-rag --out FOLDER"
        )
    if not (evaluation.modes or evaluation.systems):
        raise UsageError(
            "Nothing to evaluate. Give --methods plain-rag,par-rag, or --retrieval keyword,dense,hybrid, or both."
        )
    if out is None:
        raise UsageError("No output folder was given. Add --out FOLDER.")
    if evaluation.players and evaluation.players.model and evaluation.judge:
        raise UsageError("There is no judge without a model server. Remove --judge.")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar with the remaining time for each task."""
    with progress_bars(transient=False) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, completed=done)
            bars.update(tasks[what], completed=done)

        yield show


def _in_words(report: dict[str, Any], out: Path) -> Group:
    parts: list[RenderableType] = [report["notice"]] if report["notice"] else []
    parts += [f"! {warning}" for warning in report["warnings"]]
    if "methods" in report:
        parts += [_listing(methods_table(report["methods"], TERMINAL_METRICS)), TERMINAL_MEANINGS]
    if "retrieval" in report:
        parts.append(_listing(retrieval_table(report["retrieval"])))
    return Group(*parts, f"Report: {out / 'report.html'} (and report.json)")


def _listing(rows: Rows) -> Listing:
    listing = Listing(*rows[0], right=rows[0][1:])
    for row in rows[1:]:
        listing.add_row(*row)
    return listing
