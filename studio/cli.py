"""The `sleuth` command: results to standard output, everything live to standard error."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.text import Text

from sleuth.studio.commands import (
    ask,
    calibrate,
    doctor,
    documents,
    evaluate,
    mcp,
    methods,
    model,
    runs,
    serve,
    triples,
)
from sleuth.studio.output import progress_console
from sleuth.tools.errors import SleuthError, UsageError

_NO_UTF8 = "surrogates not allowed"
"""Python's reason not to encode what it has made of bytes in an argument."""

app = typer.Typer(
    name="sleuth",
    help="Multi-hop question answering over your own documents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(documents.ingest)
app.add_typer(documents.docs_app, name="docs")
app.command()(documents.search)
app.add_typer(triples.triples_app, name="triples")
app.command()(ask.ask)
app.command()(ask.resume)
app.add_typer(runs.runs_app, name="runs")
app.command()(methods.methods)
app.command("eval")(evaluate.evaluate_command)
app.command("calibrate")(calibrate.calibrate_command)
app.add_typer(model.model_app, name="model")
app.command()(serve.serve)
app.command()(mcp.mcp)
app.command()(doctor.doctor)

INTERRUPTED = 130


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"{version('sleuth')}\n")
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
    except ValidationError as error:
        faults = "; ".join(f"SLEUTH_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        _complain(f"A setting cannot be used: {faults}.", 2)
    except SettingsError as error:
        _complain(f"A setting cannot be read: {error}. What has several parts is written as JSON.", 2)
    except UnicodeEncodeError as error:
        if error.reason != _NO_UTF8:
            raise
        _complain(f"{error.object[:100]!r} holds bytes that are no UTF-8: see how the terminal encodes text.", 2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _complain(message: str, status: int) -> None:
    progress_console().print(Text(message, style="red"), soft_wrap=True)
    sys.exit(status)
