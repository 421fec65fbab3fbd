"""`sleuth backup` and `sleuth restore`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from sleuth.studio.backup import Manifest, back_up, verify
from sleuth.studio.backup import restore as restore_archive
from sleuth.studio.cli import options
from sleuth.studio.cli.app import run_async
from sleuth.studio.console.output import JsonOption, activity, emit


@run_async
async def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write; it must not exist.")],
    *,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Write all documents and runs into one archive, also while the server works."""
    settings = options.settings_with(wait=wait)
    with activity("Backing up"):
        manifest = await back_up(settings, file)
    size = (await asyncio.to_thread(file.stat)).st_size
    lines = [
        f"Backed up {_counted(manifest)} to {file} ({size / 1e6:,.1f} MB).",
        "The keyword index and the entity graph are not in it: they are built again when needed.",
        "It has documents and questions in plain text: store it accordingly.",
    ]
    emit(manifest, as_json, "\n".join(lines))


@run_async
async def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive of `sleuth backup`.")],
    *,
    check: Annotated[bool, typer.Option("--check", help="Only check the archive; change nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing documents and runs.")] = False,
    wait: options.Wait = None,
    as_json: JsonOption = False,
) -> None:
    """Check an archive of `sleuth backup`, then put its documents and runs into an empty home."""
    settings = options.settings_with(wait=wait)
    with activity("Checking" if check else "Restoring"):
        work = asyncio.to_thread(verify, file) if check else restore_archive(settings, file, force=force)
        manifest = await work
    origin = f"made {manifest.created_at} by sleuth {manifest.release}"
    line = f"{file} is complete" if check else f"Restored to {settings.home}"
    emit(manifest, as_json, f"{line}: {_counted(manifest)}, {origin}.")


def _counted(manifest: Manifest) -> str:
    counts = [f"{number:,} {name}" for name, number in manifest.counts.items()]
    return f"{', '.join(counts[:-1])} and {counts[-1]}" if counts[1:] else "".join(counts)
