"""`sleuth ingest`, `sleuth docs` and `sleuth search`."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from sleuth.studio.cli import options
from sleuth.studio.cli.app import run_async
from sleuth.studio.console.output import JsonOption, Listing, counted, emit, progress_bars
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.home import open_home
from sleuth.tools.ingestion.ingestion import IngestProgress, IngestReport, open_ingestion
from sleuth.tools.ingestion.ingestion import ingest as ingest_paths
from sleuth.tools.places import at_words
from sleuth.tools.search import GRAPH_MODES, Query, find_mode
from sleuth.tools.search.retriever import MODES
from sleuth.tools.search.vectors import NONE
from sleuth.tools.settings import Settings
from sleuth.tools.storage.filters import EXAMPLE
from sleuth.tools.text.normalization import single_line
from sleuth.tools.types import Explanation, Hit, hit_to_json

docs_app = typer.Typer(no_args_is_help=True, help="List, show and delete documents.")

SNIPPET = 240
"""Maximum characters of a passage in search results."""

MAX_SKIPPED = 10
"""Maximum lines of skipped files, failures and warnings each in the text of an ingest."""


@run_async
async def ingest(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Files, folders, .jsonl or .jsonl.gz corpora.")
    ] = None,
    *,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="First rebuild the indexes from scratch.")] = False,
    meta: options.Meta = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 1 if a file cannot be read.")] = False,
    workers: options.Workers = None,
    ray: options.Ray = None,
    keep_originals: options.KeepOriginals = None,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Ingest documents; resume an interrupted ingest and skip unchanged files."""
    settings = options.settings_with(keep_originals=keep_originals, ingest_workers=workers, ray=ray, wait=wait)
    if not paths and not rebuild:
        raise UsageError("No path was given. Usage: sleuth ingest PATH...")
    if paths and not all(paths):
        raise UsageError("One of the paths is empty. Check shell variables; `.` is the working folder.")
    roots = [Path(path) for path in paths or []]
    failures: list[str] = []
    with show_progress(failures) as show:
        fields = options.parse_pairs(meta, options.META_FORM)
        report = await ingest_paths(roots, settings=settings, on_progress=show, rebuild=rebuild, meta=fields)
    in_words = _in_words(report, failures, has_files=bool(roots))
    emit({**asdict(report), "failures": failures}, as_json, in_words)
    if (strict and report.failed) or (roots and not (report.added or report.updated or report.unchanged)):
        raise typer.Exit(1)


@contextmanager
def show_progress(failures: list[str]) -> Iterator[Callable[[IngestProgress], None]]:
    """Show a progress bar; print the first failures and add all to `failures`."""
    with progress_bars() as bars:
        task = bars.add_task("files", total=None)

        def show(progress: IngestProgress) -> None:
            if progress.failure:
                failures.append(str(progress.failure))
            if progress.failure and len(failures) <= MAX_SKIPPED:
                bars.console.print(Text(f"! {progress.failure}", style="yellow"), soft_wrap=True)
            indexed = f"{progress.embedded:,} of {progress.stored:,} new passages indexed, files"
            bars.update(task, completed=progress.files, total=progress.total or None, description=indexed)

        yield show


def _in_words(report: IngestReport, failures: list[str], *, has_files: bool) -> Text:
    """Return the counts, without files the time of the rebuild, and `report_lines`."""
    counts = f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged"
    counts += f", {report.failed} failed" if report.failed else ""
    read = f"{counts}: {counted(report.passages, 'new passage')} in {report.seconds:.1f} s"
    first = read if has_files else f"Rebuilt the indexes in {report.seconds:.1f} s"
    return Text("\n".join([first, *report_lines(report, failures)]))


def report_lines(report: IngestReport, failures: list[str]) -> list[str]:
    """Return the number of failures that were not printed, the other warnings, and the skipped files."""
    more, skipped = len(failures) - MAX_SKIPPED, len(report.passed_over) - MAX_SKIPPED
    lines = [f"! {more:,} more failures (--json lists all)."] if more > 0 else []
    lines += [warning for warning in report.warnings if warning not in failures]
    lines += [f"Skipped: {line}" for line in report.passed_over[:MAX_SKIPPED]]
    return [*lines, *([f"Skipped: {skipped:,} more (--json lists all)."] if skipped > 0 else [])]


@docs_app.command("list")
@run_async
async def list_(
    *,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of documents.")] = 100,
    after: Annotated[str, typer.Option(help="List documents after this id.")] = "",
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help=f"List only documents that match, such as: {EXAMPLE}")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List documents by id."""
    async with await Collection.open(Settings(), check_embedder=False) as collection:
        listed = await collection.documents(limit=limit, after=after, where=where)
    table = Listing("id", "title", "passages", "date", "tags", "added (UTC)", folded=["title"], right=["passages"])
    for document in listed:
        tags = Text(", ".join(document.tags))
        added = document.added_at[:19]
        table.add_row(document.id, Text(document.title), f"{document.passages}", document.date or "", tags, added)
    same = f" --where {shlex.quote(where)}" if where else ""
    more = f"For more: sleuth docs list{same} --after {shlex.quote(listed[-1].id)}" if len(listed) == limit else ""
    nothing = "No documents yet. Add some with: sleuth ingest PATH"
    if after or where:
        nothing = f"No documents{f' after {after!r}' if after else ''}{f' that match {where!r}' if where else ''}."
    emit([asdict(document) for document in listed], as_json, Group(table, Text(more)) if listed else nothing)


@docs_app.command()
@run_async
async def show(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A document's id, or its beginning.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a document with its text."""
    async with await Collection.open(Settings(), check_embedder=False) as collection:
        document = await collection.document(await collection.complete_id(id_))
    about = f"{document.source} · {document.media_type} · added {document.added_at[:19]} UTC"
    fields = {name: getattr(document, name) for name in ("author", "date", "language")}
    fields |= {"tags": ", ".join(document.tags), **document.meta}
    about += "".join(f" · {name} {value}" for name, value in fields.items() if value)
    emit(
        asdict(document),
        as_json,
        Group(Text(document.title, style="bold"), Text(about, style="dim"), Text(document.text)),
    )


@docs_app.command()
@run_async
async def delete(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents, or their beginnings.")],
    *,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Delete documents from the catalogue and all indexes."""
    async with open_ingestion(options.settings_with(wait=wait), command="sleuth docs delete") as ingestion:
        deleted = await ingestion.delete([await ingestion.collection.complete_id(id_) for id_ in ids])
    emit({"deleted": deleted}, as_json, f"Deleted {counted(deleted, 'document')}.")


@run_async
async def search(
    query: str,
    *,
    mode: Annotated[str, typer.Option(help=f"One of: {', '.join(MODES)}.")] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of passages.")] = 5,
    where: options.Where = "",
    wait: options.Wait = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the score of each passage (graph search only).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search passages; no model is called."""
    chosen = find_mode(mode)
    if explain and chosen not in GRAPH_MODES:
        raise UsageError("--explain works with graph search only. Add --mode graph.")
    settings, request = options.settings_with(wait=wait), Query(text=query, k=k, mode=chosen, where=where)
    opening = open_home(settings, "search", command="sleuth search")
    async with opening as home, await Collection.open(settings, home=home) as collection:
        hits = [at_words(hit, query) for hit in await collection.search(request)]
    lines = [line for hit in hits for line in _hit_lines(hit, explain)]
    nothing = "No passages found."
    if chosen != "dense" and settings.embedder != NONE:
        nothing += " The nearest ones, which may have nothing to do with it, are listed by: --mode dense"
    emit([hit_to_json(hit, explain) for hit in hits], as_json, Group(*lines) if lines else nothing)


def _hit_lines(hit: Hit, explain: bool) -> list[Text]:
    text = single_line(hit.passage.text)
    about = "  ".join(filter(None, [hit.passage.location, hit.passage.id, f"{hit.score:.4f}"]))
    head = Text.assemble(f"{hit.rank}. ", (hit.passage.title, "bold"), (f"  {about}", "dim"))
    why = explanation_lines(hit.why) if explain and hit.why else []
    return [head, Text(f"   {text[:SNIPPET]}{'…' if len(text) > SNIPPET else ''}"), *why]


_KINDS = {
    "names": "{source} names it: “{name}”",
    "named_by": "it names {source}: “{name}”",
    "shares": "{source} and it both name “{name}”",
    "walks": "from {source} by the name “{name}”",
    "states": "from {source} by the triple “{name}”",
}


def explanation_lines(why: Explanation) -> list[Text]:
    """Return the parts of the score, then each link with the sentence that contains the name."""
    parts = ", ".join(f"{name} {_short(value)}" for name, value in why.parts.items() if value)
    lines = [Text(f"   · {parts}", style="dim")]
    if why.note:
        lines.append(Text(f"   · {why.note}", style="yellow"))
    for reason in why.reasons:
        link = _KINDS[reason.kind].format(source=reason.source or "the query", name=single_line(reason.name))
        lines.append(Text(f"   · {link} (+{_short(reason.gain)})", style="cyan"))
        lines.append(Text(f"     {reason.stands_in}: {single_line(reason.sentence)}", style="dim"))
    return lines


def _short(value: float) -> str:
    """Return two decimals, or one significant digit for small values."""
    return f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}"
