"""`sleuth triples`: what models read in passages, ahead of any question."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from sleuth.graphs.core import Budget
from sleuth.graphs.ingestion import ExtractionContext, ExtractionState, extract_all_triples
from sleuth.graphs.methods.ras import prompt_version
from sleuth.studio.cli.commands.ask import CallsOption, SecondsOption, TokensOption
from sleuth.studio.client import gateway_class
from sleuth.studio.console import JsonOption, emit, progress_console
from sleuth.tools.collection import Collection
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Imported, ModelCoverage, read_triples

triples_app = typer.Typer(no_args_is_help=True, help="Facts that models read in passages, for graph search and RAS.")

IMPORTED = "import"
"""Stands in the place of the prompt's version for triples that came from a file."""

PART = 500
"""Passages whose triples are kept in one transaction."""


@triples_app.command()
def read(
    *,
    max_calls: CallsOption = None,
    max_tokens: TokensOption = None,
    max_seconds: SecondsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the extractor's model read all passages that it has not read yet; interrupt it, and the same goes on."""
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    done, read_by_now, passages = asyncio.run(_read(budget))
    counts = f"{done.read} passages read, {done.failed} failed: {done.triples} triples"
    where = f"{read_by_now} of {passages} passages are read. {done.calls} model calls, {done.tokens:,} tokens."
    more = "" if read_by_now >= passages else "\n`sleuth triples read` goes on."
    shown: dict[str, object] = {"read": done.read, "failed": done.failed, "triples": done.triples, "calls": done.calls}
    shown |= {"tokens": done.tokens, "passages_read": read_by_now, "passages": passages, "warnings": done.warnings}
    warnings = "".join(f"\n! {warning}" for warning in done.warnings)
    emit(shown, as_json, Text(f"{counts}.\n{where}{more}{warnings}"))


async def _read(budget: Budget) -> tuple[ExtractionState, int, int]:
    settings = Settings()
    async with await Collection.open(settings, check_embedder=False) as library:
        await library.require_documents()
        gateway = await asyncio.to_thread(gateway_class)
        async with gateway.open(settings) as model:
            name = model.name_of("extractor")
            context = ExtractionContext(
                model=model,
                name=name,
                readings=library.triple_stats,
                store=library.triples(model=name),
                budget=budget,
                concurrency=settings.concurrency,
            )
            before, passages = await _coverage(library, name)
            with _progress(before, passages) as show:
                done = await extract_all_triples(context, on_read=show)
            return done, (await _coverage(library, name))[0], passages


async def _coverage(library: Collection, name: str) -> tuple[int, int]:
    """How many passages a model has read by today's prompt, and how many there are."""
    version = await prompt_version()
    found = await asyncio.to_thread(library.triple_stats.summary)
    read_by_now = next((each.passages for each in found if (each.model, each.version) == (name, version)), 0)
    return read_by_now, (await library.count())[1]


@contextmanager
def _progress(before: int, passages: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    columns = TextColumn("passages"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}")
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=progress_console()
    ) as bar:
        task = bar.add_task("", total=passages, completed=before)
        triples = 0

        def show(told: Mapping[str, Any]) -> None:
            nonlocal triples
            triples += told["triples"]
            for warning in told["warnings"]:
                bar.console.print(Text(f"! {warning}", style="yellow"), soft_wrap=True)
            bar.update(task, advance=told["read"], description=f"{triples:,} triples")

        yield show


@triples_app.command()
def status(*, as_json: JsonOption = False) -> None:
    """Show which models have read how many of the passages."""

    async def go() -> tuple[list[ModelCoverage], int]:
        async with await Collection.open(Settings(), check_embedder=False) as library:
            return await asyncio.to_thread(library.triple_stats.summary), (await library.count())[1]

    found, passages = asyncio.run(go())
    lines = [
        f"{each.passages:,} of {passages:,} passages read by {each.model} ({_prompt(each)}): {each.triples:,} triples"
        for each in found
    ]
    nothing = f"None of {passages:,} passages is read yet: sleuth triples read, or sleuth triples import FILE"
    shown = {"passages": passages, "readings": [asdict(each) for each in found]}
    emit(shown, as_json, Text("\n".join(lines) or nothing))


def _prompt(reading: ModelCoverage) -> str:
    return "from a file" if reading.version == IMPORTED else f"prompt {reading.version[:8]}"


@triples_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help='Lines of {"id": PASSAGE, "triples": [[s, p, o], …]}; may be gzipped.')],
    *,
    model: Annotated[str, typer.Option(help="Whose triples they are; those of that name are replaced.")],
    as_json: JsonOption = False,
) -> None:
    """Take triples over that were found elsewhere; graph search uses them, RAS reads with its own model."""

    async def go() -> Imported:
        async with await Collection.open(Settings(), check_embedder=False) as library:
            fingerprints = await asyncio.to_thread(library.triple_stats.fingerprints)
            read = await asyncio.to_thread(read_triples, file, fingerprints)
            store, marks = library.triples(model=model), sorted(read.found)
            for at in range(0, len(marks), PART):
                part = {mark: read.found[mark] for mark in marks[at : at + PART]}
                await store.put(part, version=IMPORTED)
            return read

    read = asyncio.run(go())
    count = sum(len(those) for those in read.found.values())
    shown = {"model": model, "passages": len(read.found), "triples": count, "lines": read.lines}
    unknown = f"\n! {read.unknown} of {read.lines} lines belong to no passage here." if read.unknown else ""
    text = f"{count:,} triples of {len(read.found):,} passages are kept as those of {model}.{unknown}"
    emit({**shown, "unknown": read.unknown}, as_json, Text(text))
