"""`sleuth triples`: triples extracted from passages before any question."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import typer
from rich.text import Text

from sleuth.graphs.core.context import Budget
from sleuth.graphs.methods.ras.triple_graph import prompt_version
from sleuth.graphs.triple_extraction import Extraction, ExtractionReport
from sleuth.studio.cli import run_options
from sleuth.studio.cli.app import run_async
from sleuth.studio.client.services import open_client
from sleuth.studio.console.output import JsonOption, counted, emit, progress_bars, progress_console
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings

triples_app = typer.Typer(no_args_is_help=True, help="Extract triples for graph search and RAS.")


@triples_app.command()
@run_async
async def read(
    *,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    as_json: JsonOption = False,
) -> None:
    """Extract triples from all passages not processed yet. Rerun the same command to resume."""
    settings = Settings()
    async with await Collection.open(settings, check_embedder=False) as collection:
        await collection.require_documents()
        async with open_client(settings) as model:
            name = model.name_of("extractor")
            before, passages = await _coverage(collection, name)
            with _progress(before, passages) as show:
                done = await Extraction(
                    model=model,
                    store=collection.triples(model=name),
                    on_read=show,
                    budget=Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds),
                    concurrency=settings.concurrency,
                ).run()
        await _compare_names(collection)
        read_total, _ = await _coverage(collection, name)
    counts = f"{counted(done.read, 'passage')} processed, {done.failed} failed: {counted(done.triples, 'triple')}"
    cost = f"{counted(done.calls, 'model call')}, {counted(done.tokens, 'token')}"
    where = f"{read_total} of {passages} passages are processed. {cost}."
    more = "" if read_total >= passages else "\nRun `sleuth triples read` again to continue."
    result: dict[str, object] = {"read": done.read, "failed": done.failed, "triples": done.triples, "calls": done.calls}
    result |= {"tokens": done.tokens, "passages_read": read_total, "passages": passages, "warnings": done.warnings}
    warnings = "".join(f"\n! {warning}" for warning in done.warnings)
    emit(result, as_json, Text(f"{counts}.\n{where}{more}{warnings}"))


async def _compare_names(collection: Collection) -> None:
    """Embed and compare the names in all triples now, so that no search has to wait for it."""
    if collection.embedder is not None:
        with progress_console().status("Comparing names"):
            graph = await collection.knowledge_graph()
        progress_console().print(f"Knowledge graph: {graph.names():,} names, {graph.synonyms():,} pairs of synonyms.")


async def _coverage(collection: Collection, name: str) -> tuple[int, int]:
    """Return the number of passages that a model has processed with the current prompt, and of all passages."""
    version = await prompt_version()
    rows = await asyncio.to_thread(collection.triples().summary)
    read_total = next((row.passages for row in rows if (row.model, row.version) == (name, version)), 0)
    return read_total, (await collection.count())[1]


@contextmanager
def _progress(before: int, passages: int) -> Iterator[Callable[[ExtractionReport], None]]:
    with progress_bars(transient=False) as bars:
        task = bars.add_task("passages", total=passages, completed=before)
        triples = 0

        def show(update: ExtractionReport) -> None:
            nonlocal triples
            triples += update.triples
            for warning in update.warnings:
                bars.console.print(Text(f"! {warning}", style="yellow"), soft_wrap=True)
            bars.update(task, advance=update.read, description=f"{triples:,} triples, passages")

        yield show


@triples_app.command()
@run_async
async def status(*, as_json: JsonOption = False) -> None:
    """Show the number of passages that each model has processed."""
    async with await Collection.open(Settings(), check_embedder=False) as collection:
        rows, passages = await asyncio.to_thread(collection.triples().summary), (await collection.count())[1]
    lines = [
        f"{row.model} (prompt {row.version[:8]}): {row.passages:,} of {passages:,} passages, "
        f"{counted(row.triples, 'triple')}"
        for row in rows
    ]
    nothing = f"None of {passages:,} passages is processed yet. Run: sleuth triples read"
    result = {"passages": passages, "readings": [asdict(row) for row in rows]}
    emit(result, as_json, Text("\n".join(lines) or nothing))
