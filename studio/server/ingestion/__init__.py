"""Uploads and the worker that ingests them."""

from sleuth.studio.server.ingestion.uploads import Ingest, Uploads
from sleuth.studio.server.ingestion.worker import Ingests

__all__ = ["Ingest", "Ingests", "Uploads"]
