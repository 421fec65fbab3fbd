"""The `sleuth` command: results to standard output, everything live to standard error."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from sleuth.tools.errors import SleuthError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION

_NO_UTF8 = "surrogates not allowed"
"""Python's reason not to encode what it has made of bytes in an argument."""

COMMANDS = {
    "ingest": (
        "documents.ingest",
        "Read documents in; goes on where it was interrupted, and skips what has not changed.",
    ),
    "docs": ("documents.docs_app", "Documents that were read in."),
    "search": ("documents.search", "Search passages without asking a model."),
    "triples": ("triples.triples_app", "Facts that models read in passages, for graph search and RAS."),
    "ask": ("ask.ask", "Answer a question from the documents of the collection, or from web pages."),
    "resume": (
        "ask.resume",
        "Go on with a run that was interrupted, killed or forked; show the answer of one that is finished.",
    ),
    "runs": ("runs.runs_app", "Runs: what was asked, step by step, and branches of it."),
    "methods": (
        "methods.methods",
        "List the methods: what each does, where it was published, its typical model calls, nodes and settings.",
    ),
    "eval": (
        "evaluate.evaluate_command",
        "Judge search and methods on questions with known answers; the budget is that of the whole evaluation.",
    ),
    "calibrate": (
        "calibrate.calibrate_command",
        "Fit CRP-RAG's perplexity threshold for the model, on questions of the collection whose answers are known.",
    ),
    "model": ("model.model_app", "The embedded vLLM server, or the flags for a bigger one."),
    "serve": ("serve.serve", "Serve the chat page, the OpenAI-compatible API and the runs API over HTTP."),
    "mcp": (
        "mcp.mcp",
        "Offer ask, search, get_document and resume to a client of the Model Context Protocol, "
        "which starts this command.",
    ),
    "doctor": ("doctor.doctor", "Look at what works and what is missing; exit status 1 when something is."),
}
"""Each command's function or Typer app in `sleuth.studio.cli.commands`, and the first line of its help."""

app = typer.Typer(
    name="sleuth",
    help="Multi-hop question answering over your own documents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help texts contain brackets
    context_settings={"max_content_width": 120},
)


class _LazyCommand(TyperCommand):
    """Command that imports its module when it is used: `sleuth --help` imports none of them."""

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - as Typer has it
        return load(str(self.name)).make_context(*args, **extra)


def load(name: str) -> Any:  # noqa: ANN401 - the class differs between versions of Typer
    """Import a command's module and return the command that Typer makes of it."""
    module, _, attribute = COMMANDS[name][0].partition(".")
    found = getattr(import_module(f"sleuth.studio.cli.commands.{module}"), attribute)
    group = typer.Typer(rich_markup_mode=app.rich_markup_mode)
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=name)
    else:
        group.command(name)(found)
    return get_group(group).commands[name]


for _name, (_, _line) in COMMANDS.items():
    app.command(_name, cls=_LazyCommand, help=_line)(lambda: None)

INTERRUPTED = 130


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"{version(DISTRIBUTION)}\n")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-hop question answering over your own documents."""


def main() -> None:
    """Runs the command line."""
    guarded(app)


def guarded(command: Callable[[], object]) -> None:
    """Runs a command; what a person can mend is a line or two, never a traceback."""
    try:
        command()
    except SleuthError as error:
        _complain(str(error), 2 if isinstance(error, UsageError) else 1)
    except UnicodeEncodeError as error:
        if error.reason != _NO_UTF8:
            raise
        _complain(f"{error.object[:100]!r} holds bytes that are no UTF-8: see how the terminal encodes text.", 2)
    except ValueError as error:
        message = _setting_fault(error)
        if message is None:
            raise
        _complain(message, 2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _setting_fault(error: ValueError) -> str | None:
    """Return the line about a setting that cannot be used; None for any other error."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    if isinstance(error, ValidationError):
        faults = "; ".join(f"SLEUTH_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        return f"A setting cannot be used: {faults}."
    if isinstance(error, SettingsError):
        return f"A setting cannot be read: {error}. What has several parts is written as JSON."
    return None


def _complain(message: str, status: int) -> None:
    from rich.text import Text

    from sleuth.studio.console.output import progress_console

    progress_console().print(Text(message, style="red"), soft_wrap=True)
    sys.exit(status)
