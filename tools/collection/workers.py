"""The pool of readers of a collection."""

from sleuth.tools.documents import Bounds, FileReader, ReaderPool, default_workers
from sleuth.tools.settings import Settings


def file_bounds(settings: Settings) -> Bounds:
    """Return the limits for reading one file."""
    return Bounds(
        seconds=settings.file_seconds,
        megabytes=settings.file_megabytes,
        characters=settings.file_characters,
        ocr_languages=settings.ocr_languages,
    )


def make_readers(settings: Settings) -> ReaderPool:
    """Return the pool that reads the files of an ingest."""
    bounds, workers = file_bounds(settings), settings.ingest_workers or default_workers()
    return ReaderPool(lambda: FileReader(loaders=settings.loaders, bounds=bounds), workers)
