"""The readers of files and the embedder of a collection, on this machine or on a Ray cluster."""

from sleuth.tools.cluster import RayEmbedder, RayReaders
from sleuth.tools.documents import Bounds, FileReader, LocalReaders, ReaderPool, default_workers
from sleuth.tools.search.vectors import Embedder, LocalEmbedder
from sleuth.tools.search.vectors import make_embedder as make_local_embedder
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
    """Return the pool that reads the files of an ingest; a cluster is connected by the first file."""
    bounds = file_bounds(settings)
    if settings.ray_address:
        return RayReaders(settings.ray_address, loaders=settings.loaders, bounds=bounds)
    workers = settings.ingest_workers or default_workers()
    return LocalReaders(lambda: FileReader(loaders=settings.loaders, bounds=bounds), workers)


def make_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings; with a cluster, a local model embeds passages there."""
    embedder = make_local_embedder(settings)
    if settings.ray_address and isinstance(embedder, LocalEmbedder):
        return RayEmbedder(settings.ray_address, embedder, settings)
    return embedder
