"""Uploads and the worker that ingests them."""

from sleuth.studio.server.ingestion.uploads import Ingest, Uploads
from sleuth.studio.server.ingestion.worker import IngestionWorker

__all__ = ["Ingest", "IngestionWorker", "Uploads"]
