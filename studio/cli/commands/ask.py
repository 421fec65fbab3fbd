"""`sleuth ask` and `sleuth resume`."""

import sys
from typing import Annotated, Any

import typer

from sleuth.graphs.core.context import DEFAULT_METHOD, Budget
from sleuth.graphs.core.method import CHAT, MODELLESS_METHOD
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.registry import METHODS, configure, runnable
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.cli import options, run_options
from sleuth.studio.cli.app import run_async
from sleuth.studio.client.sleuth import Sleuth, open_sleuth, with_pages
from sleuth.studio.console.notices import warn_of_demo
from sleuth.studio.console.output import JsonOption, emit, progress_console
from sleuth.studio.console.run_view import answer_view, watch
from sleuth.tools.errors import UsageError, needs_part


@run_async
async def ask(
    question: Annotated[str | None, typer.Argument(help="Without a question, a chat begins in a terminal.")] = None,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"One of: {', '.join([*METHODS, CHAT])}. "
            f"Default: {DEFAULT_METHOD}; without a model server {MODELLESS_METHOD}."
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(help="Thread id (generated if omitted). For the chat method, continues that conversation."),
    ] = None,
    set_: run_options.Set = None,
    page: Annotated[
        list[str] | None,
        typer.Option("--page", metavar="FILE|URL", help="Search this web page instead; may be repeated."),
    ] = None,
    with_collection: Annotated[
        bool, typer.Option("--with-collection", help="Search the collection as well as the pages.")
    ] = False,
    where: options.Where = "",
    label: run_options.Label = "",
    wait: options.Wait = None,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    verbose: options.Verbose = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the documents of the collection, or from web pages."""
    values = options.parse_pairs(set_)
    settings = options.settings_with(wait=wait)
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    about: dict[str, Any] = {"budget": budget, "where": where, "label": label}
    if question is None:
        if page or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("There is no question. Usage: sleuth ask QUESTION. Without one, a chat needs a terminal.")
        if method not in (None, CHAT):
            values = {"method": method, "method_settings": values}
        from sleuth.studio.cli.interactive import chat

        configure(runnable(CHAT), values, settings.profile)
        async with open_sleuth(settings, command="sleuth ask") as sleuth:
            _warn_of_model(sleuth, method)
            await chat(sleuth, thread=thread, values=values, **about, verbose=verbose)
        return
    about |= {"method": method, "values": values, "thread": thread, "with_collection": with_collection}
    # before a connection to the model server: it reports errors that need none
    request = await with_pages(RunRequest(question=question, **about), page or ())
    async with open_sleuth(settings, command="sleuth ask") as sleuth:
        _warn_of_model(sleuth, method)
        events = sleuth.run(request)
        answer = await watch(events, progress_console(), on_stop=sleuth.runs.mark_stopped, verbose=verbose)
        emit(answer.to_json(), as_json, answer_view(answer))
        at_terminal = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        if answer.ask_all and at_terminal and typer.confirm(f"Ask all {answer.ask_all} documents now?"):
            with needs_part("survey", "Asking all documents"):
                from sleuth.studio.cli.commands.survey import ask_all

            await ask_all(sleuth, question, where=where, as_json=as_json)


@run_async
async def resume(
    thread: Annotated[str, typer.Argument(help="A run's id, or its beginning.")],
    *,
    wait: options.Wait = None,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    verbose: options.Verbose = False,
    as_json: JsonOption = False,
) -> None:
    """Resume an interrupted or forked run, or show the answer of a finished one."""
    limits = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    budget = None if limits == Budget() else limits
    settings = options.settings_with(wait=wait)
    async with open_store(settings) as store:
        thread = await store.threads.complete(thread)
        if (await store.threads.get(thread)).state in ("done", "waiting") and budget is None:
            finished = await RunService(store).answer(thread)
            emit(finished.to_json(), as_json, answer_view(finished))
            return
    async with open_sleuth(settings, command="sleuth resume") as sleuth:
        _warn_of_model(sleuth)
        events = sleuth.runs.run(thread, budget=budget)
        answer = await watch(events, progress_console(), on_stop=sleuth.runs.mark_stopped, verbose=verbose)
    emit(answer.to_json(), as_json, answer_view(answer))


def _warn_of_model(sleuth: Sleuth, method: str | None = CHAT) -> None:
    """Print that the model is the demo model, or that there is none and no method was chosen."""
    warn_of_demo(sleuth.model)
    if method is None and sleuth.default_method == MODELLESS_METHOD:
        notice = f"{sleuth.model_problem} The method {MODELLESS_METHOD} answers without a model."
        progress_console().print(notice, style="yellow", soft_wrap=True, markup=False)
