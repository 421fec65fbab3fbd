"""Ingestion of documents, which imports no LangGraph, and extraction of triples (`triple_extraction`)."""

from sleuth.graphs.ingestion.folder_sync import SyncReport, apply_diff, compare_folder, follow_folder
from sleuth.graphs.ingestion.pipeline import IngestProgress, IngestReport, ingest, ingest_into

__all__ = [
    "IngestProgress",
    "IngestReport",
    "SyncReport",
    "apply_diff",
    "compare_folder",
    "follow_folder",
    "ingest",
    "ingest_into",
]
