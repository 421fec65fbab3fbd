"""`sleuth sync`."""

import asyncio
import shlex
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sleuth.studio.cli import options
from sleuth.studio.cli.app import run_async
from sleuth.studio.cli.commands.documents import report_lines, show_progress
from sleuth.studio.console.output import JsonOption, counted, emit, progress_console
from sleuth.tools.documents.file_list import absolute
from sleuth.tools.errors import UsageError
from sleuth.tools.ingestion.folder_diff import FolderDiff
from sleuth.tools.ingestion.folder_sync import apply_diff, compare_folder, follow_folder
from sleuth.tools.ingestion.ingestion import IngestReport, own_fields
from sleuth.tools.settings import Settings

MAX_SHOWN = 20
"""Maximum documents of each kind in the text of a plan."""


@run_async
async def sync(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder whose files the collection follows.")],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply the changes. Without this option, list them and ask in a terminal.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then apply further changes of the folder as they happen, until Ctrl-C.")
    ] = False,
    allow_mass_removal: Annotated[
        bool, typer.Option("--allow-mass-removal", help="Apply changes that remove more than half of the documents.")
    ] = False,
    meta: options.Meta = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    keep_originals: options.KeepOriginals = None,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Add new files of a folder, update changed ones and remove documents whose file no longer exists."""
    if not folder:
        raise UsageError("The folder is empty. Check shell variables; `.` is the working folder.")
    settings = options.settings_with(keep_originals=keep_originals, ingest_workers=workers, ray=ray, wait=wait)
    fields = own_fields(options.parse_pairs(meta, options.META_FORM))
    root = await asyncio.to_thread(absolute, Path(folder))
    diff = await compare_folder(root, settings=settings)
    console = progress_console()
    if not diff.is_empty():
        asks = (
            not (yes or as_json or (diff.lost and not allow_mass_removal))
            and console.is_terminal
            and sys.stdin.isatty()
        )
        if yes or asks:
            console.print(Text("\n".join(_plan_lines(diff))), soft_wrap=True)
        if not (yes or (asks and typer.confirm("Apply these changes?", err=True))):
            flags = ["--watch"] * watch + ["--allow-mass-removal"] * bool(diff.lost)
            flags += [*(f"--meta={field}" for field in meta or ()), "--yes"]
            command = shlex.join(["sleuth", "sync", folder, *flags])
            lines = [] if asks else _plan_lines(diff)
            human = Text("\n".join([*lines, f"Nothing was changed. To apply these changes: {command}"]))
            emit({**_as_json(diff), "applied": None}, as_json, human)
            return
    failures: list[str] = []
    with show_progress(failures) as show:
        report = await apply_diff(
            diff, settings=settings, on_progress=show, meta=fields, mass_removal=allow_mass_removal
        )
    _emit_report(diff, report, failures, as_json)
    if watch:
        await _follow(root, settings, fields, as_json)


async def _follow(root: Path, settings: Settings, meta: dict[str, str], as_json: bool) -> None:
    """Apply changes of the folder until Ctrl-C, which lets an ingest finish; a second one does not wait for it."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, end)
    progress_console().print(f"Following {root}. Ctrl-C ends it.")
    async for changed, report in follow_folder(root, settings=settings, stop=stop, meta=meta):
        _emit_report(changed, report, [], as_json)
    raise KeyboardInterrupt


def _plan_lines(diff: FolderDiff) -> list[str]:
    kinds = {"add": diff.added, "update": diff.updated, "remove": tuple(diff.removed.values())}
    counts = ", ".join(f"{len(names)} to {kind}" for kind, names in kinds.items())
    counts += f", {diff.unchanged} unchanged" + (f", {_unreadable(diff)}" if diff.unreadable else "")
    lines = [f"{diff.folder}: {counts}"]
    for kind, names in kinds.items():
        lines += [f"{kind} {name}" for name in names[:MAX_SHOWN]]
        more = len(names) - MAX_SHOWN
        lines += [f"{kind} {more} more (--json lists all)"] if more > 0 else []
    return [*lines, *(f"! {failure}" for failure in diff.failures[:MAX_SHOWN])]


def _unreadable(diff: FolderDiff) -> str:
    return f"{len(diff.unreadable)} unreadable as before"


def _as_json(diff: FolderDiff) -> dict[str, object]:
    return {
        "folder": str(diff.folder),
        "add": diff.added,
        "update": diff.updated,
        "remove": diff.removed,
        "unchanged": diff.unchanged,
        "failures": [str(failure) for failure in diff.failures],
        "unreadable": diff.unreadable,
    }


def _emit_report(diff: FolderDiff, done: IngestReport, failures: list[str], as_json: bool) -> None:
    counts = f"{done.added} added, {done.updated} updated, {done.removed} removed, {diff.unchanged} unchanged"
    counts += f", {_unreadable(diff)}" if diff.unreadable else ""
    lines = [f"{counts}: {counted(done.passages, 'new passage')} in {done.seconds:.1f} s"]
    lines += [f"! {failure}" for failure in map(str, diff.failures) if failure not in failures]
    emit(
        {**_as_json(diff), "applied": {**asdict(done), "failures": failures}},
        as_json,
        Text("\n".join([*lines, *report_lines(done, failures)])),
    )
