"""`sleuth survey`."""

import asyncio
import tomllib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.text import Text

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Event, Step
from sleuth.graphs.core.method import SURVEY
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.cli import options, run_options
from sleuth.studio.cli.app import run_async
from sleuth.studio.client.sleuth import Sleuth, open_sleuth
from sleuth.studio.console.notices import warn_of_size
from sleuth.studio.console.output import JsonOption, counted, emit, format_of, progress_bars, progress_console, save
from sleuth.studio.console.run_view import watch
from sleuth.studio.console.survey_table import FORMATS, survey_view
from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import list_all


@run_async
async def survey(
    question: Annotated[
        str | None, typer.Argument(help="About all documents, such as: Which contracts end in 2027?")
    ] = None,
    *,
    columns: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Columns instead of planned ones: [[columns]] with name, question, kind."
        ),
    ] = None,
    out: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Write the table: .csv, .xlsx, .md or .json; repeatable.")
    ] = None,
    update: Annotated[
        str | None, typer.Option(metavar="RUN", help="Ask documents that are new or changed since this survey.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first documents, to try the columns.")] = None,
    containing: Annotated[str, typer.Option(metavar="WORDS", help="Ask only documents with one of these words.")] = "",
    thorough: Annotated[bool, typer.Option("--thorough", help="Read long documents whole, in pieces.")] = False,
    where: options.Where = "",
    label: run_options.Label = "",
    thread: options.Thread = None,
    set_: run_options.Set = None,
    wait: options.Wait = None,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    as_json: JsonOption = False,
) -> None:
    """Ask every document the same questions, and count the answers."""
    for file in out or []:
        format_of(file, FORMATS)
    settings = options.settings_with(wait=wait)
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    if bool(question) == bool(update):
        raise UsageError("Give a question, or --update RUN. Usage: sleuth survey QUESTION.")
    own = {"limit": limit, "containing": containing, "thorough": thorough}
    values = options.parse_pairs(set_) | {name: value for name, value in own.items() if value}
    values |= {"columns": await asyncio.to_thread(_read_columns, columns)} if columns else {}
    parameters: dict[str, Any] = {"values": values, "budget": budget, "where": where, "label": label}
    request = question and RunRequest(question=question, method=SURVEY, thread=thread, **parameters)
    async with open_sleuth(settings, command="sleuth survey") as sleuth:
        warn_of_size(sleuth.model, "a survey")
        if not request:
            assert update
            id = await sleuth.runs.store.threads.complete(update)
            await sleuth.runs.queue_survey_update(id)
            events = sleuth.runs.run(id, budget=None if budget == Budget() else budget)
        else:
            estimate = await _estimate(sleuth, where, request.settings.model_dump())
            progress_console().print(Text(estimate), soft_wrap=True)
            events = sleuth.run(request)
        answer = await _watch(sleuth, events)
    await save(answer.table or {}, out or [], FORMATS)
    emit(answer.to_json(), as_json, survey_view(answer) if answer.table else answer.text)


def _read_columns(file: Path) -> list[dict[str, Any]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{file} is not TOML: {error}.") from None
    columns: Any = content.get("columns")
    if not isinstance(columns, list) or not columns:
        raise UsageError(f'{file} has no columns. Begin each with [[columns]], then name = "…" and question = "…".')
    return columns


async def _estimate(sleuth: Sleuth, where: str, chosen: dict[str, Any]) -> str:
    """Return how many documents are asked, in how many calls, and about how long that takes."""
    documents = len((await list_all(sleuth.collection, where=where))[: chosen["limit"]])
    columns = len(chosen["columns"]) or 1
    calls = documents * columns
    text = f"{counted(documents, 'document')}, {'at least ' if chosen['thorough'] or not chosen['columns'] else ''}"
    text += counted(calls, "model call")
    runs = [run for run in await sleuth.runs.store.threads.list_newest(limit=50) if run.seconds and run.calls]
    if not runs:
        return f"{text}. How long a call takes is not known yet: --limit 5 tries it."
    seconds = calls * sum(run.seconds or 0 for run in runs) / sum(run.calls or 0 for run in runs)
    return f"{text}, about {seconds / 60:.0f} minutes at the speed of earlier runs. Ctrl-C stops it; it can be resumed."


async def ask_all(sleuth: Sleuth, question: str, *, where: str, as_json: bool) -> None:
    """Ask every document a question, and print the table."""
    warn_of_size(sleuth.model, "a survey")
    answer = await _watch(sleuth, sleuth.run(RunRequest(question=question, method=SURVEY, where=where)))
    emit(answer.to_json(), as_json, survey_view(answer) if answer.table else answer.text)


async def _watch(sleuth: Sleuth, events: AsyncGenerator[Event]) -> Answer:
    """Print the steps of a survey with a bar for its documents; return its answer."""
    with progress_bars() as progress:
        return await watch(_count(events, progress), progress.console, on_stop=sleuth.runs.mark_stopped)


async def _count(events: AsyncGenerator[Event], progress: Progress) -> AsyncGenerator[Event]:
    """Pass events on, except those of single documents, which move the progress bar."""
    task = progress.add_task("documents", total=None)
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Step) and event.node in ("read", "verify"):
                progress.advance(task, event.node == "read" and event.state == "finished")
                continue
            if isinstance(event, Step) and event.node == "select" and event.state == "finished":
                progress.update(task, total=sum(map(bool, event.update.get("documents", {}).values())))
            if isinstance(event, Answer):
                progress.stop()
            yield event
