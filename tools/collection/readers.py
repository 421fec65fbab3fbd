"""The readers of files of a collection, and the worker processes of an ingest."""

from functools import partial

from sleuth.tools.documents import Bounds, FileReader, LocalWorkers, Workers, default_workers
from sleuth.tools.settings import Settings


def make_reader(settings: Settings) -> FileReader:
    """Return a reader of single files, with the loaders and limits of the settings."""
    bounds = Bounds(
        seconds=settings.file_seconds,
        megabytes=settings.file_megabytes,
        characters=settings.file_characters,
        ocr_languages=settings.ocr_languages,
    )
    return FileReader(loaders=settings.loaders, bounds=bounds)


def make_workers(settings: Settings) -> Workers:
    """Return the worker processes of an ingest."""
    return LocalWorkers(partial(make_reader, settings), settings.ingest_workers or default_workers())
