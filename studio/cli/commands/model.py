"""`sleuth model`."""

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from sleuth.studio.cli.app import run_async
from sleuth.studio.console.output import JsonOption, activity, counted, emit
from sleuth.studio.model_server import server
from sleuth.studio.model_server.adapter import resolve_adapter
from sleuth.studio.model_server.flags import Dtype, ServeOptions, default_options, gpu_command
from sleuth.studio.model_server.install import install as install_lock
from sleuth.studio.model_server.models import DEFAULT_MODEL, MODELS, InstallName, ModelName
from sleuth.studio.model_server.reader import install_reader
from sleuth.studio.model_server.weights import ensure_weights
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings, is_loopback

model_app = typer.Typer(
    no_args_is_help=True, help="Manage the embedded vLLM server, or print the flags of a larger one."
)

DEFAULTS = ServeOptions()
_SIZES = "; ".join(f"{name}: {row.base}, {row.gigabytes:g} GB of memory, {row.expect}" for name, row in MODELS.items())
ModelOption = Annotated[ModelName, typer.Option("--model", help=f"{_SIZES}.")]


def default_port(model_url: str) -> int:
    """Return the port of SLEUTH_MODEL_URL if it is on this machine, else the default."""
    parts = urlsplit(model_url)
    return (parts.port if is_loopback(parts.hostname or "") else None) or DEFAULTS.port


@model_app.command()
@run_async
async def install(
    name: Annotated[
        InstallName,
        typer.Argument(help="A model of the server, or reader: the large evidence checker (438 MB to download)."),
    ] = DEFAULT_MODEL,
    *,
    as_json: JsonOption = False,
) -> None:
    """Install vLLM's CPU build into this environment (Linux on x86-64) with a model, or the large evidence checker."""
    models = Settings().home / "models"
    with activity("Checking what is installed") as report:
        if name == "reader":
            built = await install_reader(models, report)
            installed, done = (["reader"], f"Installed it in {built}.") if built else ([], "It is installed.")
            following = 'sleuth ask "QUESTION"'
        else:
            installed = await install_lock(report)
            await ensure_weights(MODELS[name], models, report)
            done = f"Installed {counted(len(installed), 'package')}." if installed else "Everything is installed."
            following = "sleuth model serve" + (f" --model {name}" if name != DEFAULT_MODEL else "")
    emit({"installed": installed}, as_json, f"{done} Next: {following}")


@model_app.command()
@run_async
async def serve(
    *,
    model: ModelOption = DEFAULT_MODEL,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of the model; by default it is downloaded.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: the port of SLEUTH_MODEL_URL.")] = None,
    dtype: Annotated[
        Dtype | None,
        typer.Option(
            help="float32 gives repeatable replies. Default: int8 for larger models, if the processor has AVX512-VNNI; "
            "else bfloat16, if it has AVX512-BF16 or AMX; else float32."
        ),
    ] = None,
    eager: Annotated[
        bool, typer.Option("--eager/--compile", help="Compiling slows the start and speeds up replies.")
    ] = DEFAULTS.eager,
    max_model_len: Annotated[int, typer.Option(min=512, max=DEFAULTS.max_model_len)] = DEFAULTS.max_model_len,
    threads: Annotated[int, typer.Option(min=0, help="0: one per physical core.")] = DEFAULTS.threads,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|none", help="LoRA adapter of the model (default: the packaged one, if there is one)."
        ),
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in the foreground until the server ends or Ctrl-C.")
    ] = False,
    print_command: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Only print the command that serves MODEL on a machine with GPUs."),
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Number of GPUs for --print-command.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Start the embedded model server and wait until it answers."""
    settings = Settings()
    port = port or default_port(settings.model_url)
    if print_command is not None:
        line = gpu_command(print_command, port=port, gpus=gpus)
        emit({"command": line}, as_json, line)
        return
    usual = default_options(model)
    options = replace(
        usual,
        port=port,
        dtype=dtype or usual.dtype,
        eager=eager,
        max_model_len=max_model_len,
        threads=threads,
        adapter=resolve_adapter(adapter, model),
    )
    if not foreground and not as_json:
        await _offer_change(settings.home, options.model_name)
    with activity("Looking for a running model server", live=not foreground) as report:
        try:
            current = await server.serve(settings.home, options, report, weights=weights, foreground=foreground)
        except ModelUnavailable as error:  # the smallest model, which is installed, can always be served
            typer.echo(f"{error} Serving tiny instead.", err=True)
            usual = default_options("tiny")
            options = replace(options, model="tiny", dtype=dtype or usual.dtype, adapter=usual.adapter)
            current = await server.serve(settings.home, options, report, foreground=foreground)
    is_other = "model_url" in settings.model_fields_set and current.url != settings.model_url
    hint = f"\nTo use it: export SLEUTH_MODEL_URL={current.url}" if is_other else ""
    emit(current, as_json, _in_words(current) + _differences(current.options, options) + hint)


async def _offer_change(home: Path, name: str) -> None:
    """Stop the server of another model if the person at the terminal wants that."""
    running = await server.status(home)
    if running.pid is None or running.model == name or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not typer.confirm(f"{running.model} is running at {running.url}. Stop it and serve {name}?", err=True):
        raise typer.Exit(1)
    await server.stop(home)


@model_app.command()
@run_async
async def status(as_json: JsonOption = False) -> None:
    """Show the status of the embedded model server."""
    current = await server.status(Settings().home)
    emit(current, as_json, _in_words(current))


@model_app.command()
@run_async
async def stop(as_json: JsonOption = False) -> None:
    """Stop the embedded model server."""
    with activity("Stopping the model server"):
        ended = await server.stop(Settings().home)
    emit({"ended": int(ended)}, as_json, "Stopped." if ended else "It was not running.")


def _differences(running: ServeOptions | None, requested: ServeOptions) -> str:
    """Return a line with the options that a server which ran already does not have."""
    if running is None or running == requested:
        return ""
    values = [f"{name}={value}" for name, value in asdict(running).items() if value != getattr(requested, name)]
    return f"\nIt was already running, with {', '.join(values)}. To change that, first: sleuth model stop"


def _in_words(current: server.ServerStatus) -> str:
    if current.state == "stopped":
        return "Stopped. Start it with: sleuth model serve"
    if current.state == "dead":
        return f"Crashed (log: {current.log}). Restart it with: sleuth model serve"
    return f"{current.model} is {current.state} at {current.url} (process {current.pid}, log: {current.log})"
