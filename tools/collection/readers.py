"""The readers of files, the worker processes and the embedder of a collection, on this machine or on a Ray cluster."""

from functools import partial

from sleuth.tools.collection.ray_cluster import RayEmbedder, RayWorkers
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.documents.parallel_reading import LocalWorkers, Workers, default_workers
from sleuth.tools.documents.resource_limits import Bounds
from sleuth.tools.search.vectors import Embedder, LocalEmbedder, make_embedder
from sleuth.tools.settings import Settings


def make_reader(settings: Settings) -> FileReader:
    """Return a reader of single files, with the loaders and limits of the settings."""
    return FileReader(loaders=settings.loaders, bounds=_bounds(settings))


def make_workers(settings: Settings) -> Workers:
    """Return the workers of an ingest; those of a cluster are connected when they are first needed."""
    if settings.ray:
        return RayWorkers(settings.ray, loaders=settings.loaders, bounds=_bounds(settings))
    return LocalWorkers(partial(make_reader, settings), settings.ingest_workers or default_workers())


def make_passage_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings; with a cluster, a model that is loaded here embeds passages there."""
    embedder = make_embedder(settings)
    if settings.ray and isinstance(embedder, LocalEmbedder):
        return RayEmbedder(settings.ray, embedder)
    return embedder


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        seconds=settings.file_seconds,
        megabytes=settings.file_megabytes,
        characters=settings.file_characters,
        ocr_languages=settings.ocr_languages,
    )
