"""`sleuth runs`: list, show, history, fork, export, delete, prune."""

import json
import shlex
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sleuth.graphs.core.method import Method
from sleuth.graphs.evidence.retrieval import mark_changed
from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.history import CheckpointView, export_run, fork_run
from sleuth.graphs.runs.history import list_checkpoints as history_of
from sleuth.graphs.runs.pruning import PrunePreview, PruneReport, preview_prune, remove_runs
from sleuth.graphs.runs.pruning import prune as prune_runs
from sleuth.graphs.runs.service import RunService
from sleuth.studio.cli.app import run_async
from sleuth.studio.cli.options import seconds_in
from sleuth.studio.console.output import JsonOption, Listing, counted, emit
from sleuth.studio.console.run_view import answer_view, graph_view, outcome_in_words
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.home import open_home
from sleuth.tools.settings import Settings
from sleuth.tools.storage.id_prefix import shorten_ids
from sleuth.tools.storage.locks import LockMode

ThreadArgument = Annotated[str, typer.Argument(help="A run's id, or its beginning.")]

runs_app = typer.Typer(no_args_is_help=True, help="List, inspect, fork, export, delete and prune runs.")


@asynccontextmanager
async def _open_runs(lock: LockMode | None = None, command: str = "") -> AsyncIterator[RunService]:
    settings = Settings()
    async with open_home(settings, lock, command=command) as home, open_store(settings, home) as store:
        yield RunService(store)


@runs_app.command("list")
@run_async
async def list_(
    *,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of runs.")] = 50,
    all_: Annotated[
        bool, typer.Option("--all", help="List the sub-runs of `auto` and `chat`, too, as --json does.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List runs, the latest first."""
    async with _open_runs() as runs:
        threads = await runs.store.threads.list_newest(RunFilter(with_subruns=all_ or as_json, with_empty=False), limit)
        counts = {} if all_ or as_json else await runs.store.threads.count_subruns([thread.id for thread in threads])
    table = Listing("thread", "method", "status", "last changed (UTC)", "question", folded=["question"])
    for thread in _with_subruns(threads):
        method = f"  sub-run {thread.subrun}: {thread.method}" if thread.subrun else thread.method
        method += f" (+{counts[thread.id]})" if thread.id in counts else ""
        question = Text(f"part of {thread.part_of}" if thread.subrun else (thread.title or thread.question)[:200])
        outcome = outcome_in_words(thread.outcome, weak=thread.weak)
        table.add_row(thread.id, method, outcome, thread.updated_at[:19], question)
    nothing = "No runs yet. Start one with: sleuth ask QUESTION"
    folded = [Text("(+N): N sub-runs, which --all lists.")] if counts else []
    emit([thread.to_json() for thread in threads], as_json, Group(table, *folded) if threads else nothing)


def _with_subruns(threads: list[Thread]) -> list[Thread]:
    """Return the threads with the sub-runs of each run directly after it."""
    place = {thread.id: at for at, thread in enumerate(threads)}
    return sorted(threads, key=lambda run: (place.get(run.part_of, place[run.id]), run.subrun, run.created_at))


@runs_app.command()
@run_async
async def show(thread: ThreadArgument, *, as_json: JsonOption = False) -> None:
    """Show the answer of a finished run with its evidence, graph, sub-runs and cost."""
    async with _open_runs() as runs:
        answer = await runs.answer(await runs.store.threads.complete(thread))
    async with await Collection.open(Settings(), check_embedder=False) as collection:
        await mark_changed(answer.citations, collection)
    views = [*([graph_view(answer.graph)] if answer.graph else []), answer_view(answer)]
    emit(answer.to_json(), as_json, Group(*views))


@runs_app.command()
@run_async
async def history(thread: ThreadArgument, *, as_json: JsonOption = False) -> None:
    """Show a line for each checkpoint of a run, the newest first; fork from any of them. --json has every field."""
    async with _open_runs() as runs:
        row = await runs.store.threads.get(await runs.store.threads.complete(thread))
        moments = await history_of(runs, row.id)
    steps, ids = Counter(moment.step for moment in moments), shorten_ids([moment.checkpoint for moment in moments])
    method = runnable(row.method)
    labels = [ids[moment.checkpoint] if steps[moment.step] > 1 else "" for moment in moments]  # of forks
    lines = (_moment_line(moment, method, label) for moment, label in zip(moments, labels, strict=True))
    emit([moment.to_json() for moment in moments], as_json, Group(*lines))


def _moment_line(moment: CheckpointView, method: Method, id: str) -> Text:
    """Return a line for a checkpoint, truncated to the width of the terminal."""
    place = f"{', '.join(moment.node) or 'input'} → {', '.join(moment.next) or 'end'}"
    changed = {name: value for name, value in moment.changed.items() if value and name != "calls"}
    lines = method.summarize_update(moment.changed) or [_field(name, value) for name, value in changed.items()]
    step, changes = f"step {moment.step} {id}".rstrip(), f"  {'; '.join(lines)}".rstrip()
    return Text.assemble((step, "cyan"), "  ", (place, "bold"), (changes, "dim"), no_wrap=True, overflow="ellipsis")


def _field(name: str, value: object) -> str:
    """Return the name of a field, with its text if it has one."""
    text = value.get("text") if isinstance(value, dict) else value
    return f"{name}: {text}" if isinstance(text, str) else name


@runs_app.command()
@run_async
async def fork(
    thread: ThreadArgument,
    *,
    at: Annotated[
        str,
        typer.Option(help="The checkpoint to branch from, as in `runs history`: its id or beginning, step, or node."),
    ],
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="FIELD=JSON", help="A changed state field; keyed fields are merged."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Continue with another method and the findings so far.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Give the branch a thread of its own; the answer of this one stays.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Branch a run from a checkpoint; `sleuth resume` runs the branch."""
    changes = _changes(state or [])
    async with _open_runs() as runs:
        whole = await runs.store.threads.complete(thread)
        branch = await fork_run(runs, whole, at=at, changes=changes, into=method, name=name)
        forked = await runs.state(await runs.store.threads.get(branch["thread"]), branch["checkpoint"])
    following = ", ".join(forked.next) or "the end"
    lines = [f"Forked: checkpoint {branch['checkpoint']}, before {following}"]
    lines += [f"What {following} writes replaces your change of the same field or key."] if changes else []
    lines += ["Without --state or --method, the same nodes run again."] if not (changes or method) else []
    emit(branch, as_json, "\n".join([*lines, f"Run it with: sleuth resume {branch['thread']}"]))


def _changes(texts: list[str]) -> dict[str, Any]:
    changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            changes[name] = json.loads(value)
        except ValueError:
            example = """--state 'wave=["1"]'"""
            raise UsageError(f"--state takes FIELD=JSON, not {text[:200]!r}. For example: {example}") from None
    return changes


@runs_app.command()
@run_async
async def export(thread: ThreadArgument, *, as_json: JsonOption = False) -> None:
    """Print a run as one JSON value: history, state, prompts and passages."""
    async with _open_runs() as runs:
        exported = await export_run(runs, await runs.store.threads.complete(thread))
    emit(exported, True, "")


@runs_app.command("delete")
@run_async
async def delete_(
    threads: Annotated[list[str], typer.Argument(metavar="THREAD...", help="Ids of runs, or their beginnings.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Delete runs with their checkpoints, sub-runs and events. Texts that no other run uses are deleted too."""
    async with _open_runs("search", "sleuth runs delete") as runs:
        ids = [await runs.store.threads.complete(thread) for thread in threads]
        deleted = await remove_runs(runs, *ids)
    subruns = sum(1 for thread in deleted if thread.subrun)
    with_subruns = f" with {counted(subruns, 'sub-run')}" if subruns else ""
    text = f"Deleted {counted(len(deleted) - subruns, 'run')}{with_subruns}."
    emit({"deleted": [thread.id for thread in deleted]}, as_json, text)


@runs_app.command()
@run_async
async def prune(
    *,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="30d", help="Remove runs last changed before this duration: 12h, 30d, 2w, '3 months'."),
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Keep at most N checkpoints per remaining run.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove. Without this option, only list what would be removed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old runs or old checkpoints. Without --yes, only list them."""
    if older_than is None and keep_last is None:
        raise UsageError("Nothing to remove was given. Add --older-than 30d, --keep-last 10, or both.")
    seconds = None if older_than is None else seconds_in(older_than, option="--older-than")
    if not yes:
        async with _open_runs() as runs:
            planned = await preview_prune(runs, older_than=seconds, keep_last=keep_last)
        would = {"threads": [thread.id for thread in planned.threads], "checkpoints": planned.checkpoints}
        emit({**asdict(PruneReport()), "would_remove": would}, as_json, _in_words(planned, older_than, keep_last))
        return
    async with _open_runs("alone", "sleuth runs prune") as runs:
        report = await prune_runs(runs, older_than=seconds, keep_last=keep_last)
    human = f"Removed {counted(report.threads, 'run')}, {counted(report.checkpoints, 'checkpoint')}"
    human += f" and {counted(report.texts, 'text')}."
    emit(report, as_json, human)


def _in_words(planned: PrunePreview, older_than: str | None, keep_last: int | None) -> RenderableType:
    """Return the runs and the number of checkpoints that would be removed, and the command that removes them."""
    if not planned.threads and not planned.checkpoints:
        return "Nothing to remove."
    table = Listing("thread", "method", "last changed (UTC)", "question", folded=["question"])
    for thread in _with_subruns(planned.threads):
        table.add_row(thread.id, thread.method, thread.updated_at[:19], Text(thread.question[:200]))
    values = {"--older-than": older_than, "--keep-last": keep_last}
    options = [word for name, value in values.items() if value is not None for word in (name, f"{value}")]
    counts = f"{counted(len(planned.threads), 'run')} and {counted(sum(planned.checkpoints.values()), 'checkpoint')}"
    command = shlex.join(["sleuth", "runs", "prune", *options, "--yes"])
    line = f"This would remove {counts}. Nothing was removed. To remove them: {command}"
    return Group(*([table] if planned.threads else []), line)
