"""Installs the large evidence checker: its base is downloaded, and merged with the packaged adapter."""

import asyncio
from pathlib import Path

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.models import READER
from sleuth.studio.model_server.weights import ensure_weights, exclusively
from sleuth.tools.evidence_checker.checker import LARGE, SETTINGS
from sleuth.tools.evidence_checker.large_model import PACKAGED, build_large_checker


async def install_reader(models: Path, report: Report) -> Path | None:
    """Return the folder of the checker, or None if this release's is there.

    Args:
        models: the folder `models` of the home.
        report: called with each line of progress.

    Raises:
        ModelUnavailable: no source of the base answers.
        ModelError: what was downloaded is not the base.
        StoreError: the folder cannot be written.
    """
    folder = models / LARGE.name
    async with exclusively(folder):
        if (folder / SETTINGS).is_file() and (folder / SETTINGS).read_bytes() == (PACKAGED / SETTINGS).read_bytes():
            return None
        base = await ensure_weights(READER, models, report)
        report("Merging the adapter")
        await asyncio.to_thread(build_large_checker, base, folder)
        base.unlink()
    return folder
