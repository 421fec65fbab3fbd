"""The `sleuth` command: results to standard output, everything live to standard error."""

import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup
from typer.main import get_group

from sleuth.tools.errors import DISTRIBUTION, EXTRA_OF, SleuthError, UsageError, needs_part

P = ParamSpec("P")

_NO_UTF8 = "surrogates not allowed"
"""Python's reason why it cannot encode an argument that contained invalid bytes."""

COMMANDS = {
    "init": ("init.init", "Find the model server and write sleuth.toml."),
    "ingest": ("documents.ingest", "Ingest files and folders."),
    "sync": ("sync:sync.sync", "Make the documents follow a folder."),
    "docs": ("documents.docs_app", "List, show and delete documents."),
    "search": ("documents.search", "Search passages; no model is called."),
    "triples": ("triples:triples.triples_app", "Extract triples for graph search and RAS."),
    "ask": ("ask.ask", "Answer a question, or begin a chat."),
    "survey": ("survey:survey.survey", "Ask every document the same questions."),
    "report": ("report:report.report", "Write a report of several sections with sources."),
    "resume": ("ask.resume", "Resume an interrupted or forked run."),
    "runs": ("runs.runs_app", "List, inspect, fork, export, delete and prune runs."),
    "methods": ("methods.methods", "List the methods and their settings."),
    "eval": ("evaluation:evaluate.evaluate_command", "Evaluate methods and search modes."),
    "questions": ("evaluation:evaluate.questions_app", "Write evaluation questions."),
    "calibrate": ("evaluation:calibrate.calibrate_command", "Fit CRP-RAG's threshold for the model."),
    "model": ("model-server:model.model_app", "Manage the embedded model server."),
    "serve": ("server:serve.serve", "Serve the chat page and the APIs over HTTP."),
    "mcp": ("mcp:mcp.mcp", "Serve an MCP client over standard input and output."),
    "backup": ("backup:backup.backup", "Write all documents and runs into one archive."),
    "restore": ("backup:backup.restore", "Put the content of an archive into an empty home."),
    "doctor": ("doctor.doctor", "Check the installation and the servers."),
}
"""Each command's function or Typer app in `sleuth.studio.cli.commands`, after its part, and its line in `--help`."""


class LazyGroup(TyperGroup):
    """Group that imports a command's module when the command is used."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - Typer has a Click of its own
        """Return the names of the commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - of Click
        """Return a command; None if there is none of this name."""
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - of Click
        """Write the list of the commands; the base imports each of them for its docstring."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:  # noqa: ANN401 - of Click
        """Return the options or commands that begin so; the base imports each command for its docstring."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]


app = typer.Typer(
    name="sleuth",
    cls=LazyGroup,
    help="Multi-hop question answering over your own documents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help texts contain brackets
    context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
)


def run_async(command: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Return a command that runs a coroutine function in an event loop of its own."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        import asyncio

        asyncio.run(command(*args, **kwargs))

    return run


def load(name: str) -> Any:  # noqa: ANN401 - the class differs between versions of Typer
    """Import a command's module and return the command that Typer makes of it."""
    part, _, place = COMMANDS[name][0].rpartition(":")
    module, _, attribute = place.rpartition(".")
    with needs_part(part, f"sleuth {name}") if part else nullcontext():
        target = getattr(import_module(f"sleuth.studio.cli.commands.{module}"), attribute)
    group = typer.Typer(rich_markup_mode=app.rich_markup_mode)
    if isinstance(target, typer.Typer):
        group.add_typer(target, name=name)
    else:
        group.command(name)(target)
    command = get_group(group).commands[name]
    _add_examples(command, name)
    return command


def _add_examples(command: Any, name: str) -> None:  # noqa: ANN401 - as above
    from sleuth.studio.cli.examples import EXAMPLES

    if lines := EXAMPLES.get(name):  # the backspace keeps the lines as they are
        command.epilog = "\n".join(["Examples:", "", "\b", *lines])
    for inner, subcommand in getattr(command, "commands", {}).items():
        _add_examples(subcommand, f"{name} {inner}")


INTERRUPTED = 130


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        sys.stdout.write(f"{version(DISTRIBUTION)}\n")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-hop question answering over your own documents."""


def main() -> None:
    """Run the command line."""
    run_cli(app)


def run_cli(command: Callable[[], object]) -> None:
    """Run a command; print errors that a user can fix as a message, without a traceback."""
    assert logging.lastResort
    logging.lastResort.setFormatter(_Printable())
    try:
        command()
    except SleuthError as error:
        _exit_with(str(error), 2 if isinstance(error, UsageError) else 1)
    except (ModuleNotFoundError, ValueError) as error:
        message = _explanation(error)
        if message is None:
            raise
        _exit_with(message, 2 if isinstance(error, ValueError) else 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


class _Printable(logging.Formatter):
    """Formatter of warnings, without the control characters of file names in them."""

    def format(self, record: logging.LogRecord) -> str:
        from sleuth.studio.console.output import printable

        return printable(super().format(record))


def _explanation(error: ModuleNotFoundError | ValueError) -> str | None:
    """Return the message for a missing extra, an invalid setting or invalid text; None for any other error."""
    if isinstance(error, ModuleNotFoundError):
        name = EXTRA_OF.get((error.name or "").partition(".")[0])
        return f"This command needs {error.name}: pip install '{DISTRIBUTION}[{name}]'." if name else None
    if isinstance(error, UnicodeEncodeError) and error.reason == _NO_UTF8:
        return f"{error.object[:100]!r} contains bytes that are not UTF-8. Check the encoding of the terminal."
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    if isinstance(error, ValidationError):
        faults = "; ".join(f"SLEUTH_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        return f"A setting is invalid: {faults}."
    if isinstance(error, SettingsError):
        return f"A setting cannot be parsed: {error}. Write values with several parts as JSON."
    return None


def _exit_with(message: str, status: int) -> None:
    from rich.text import Text

    from sleuth.studio.console.output import progress_console

    progress_console().print(Text(message, style="red"), soft_wrap=True)
    sys.exit(status)
