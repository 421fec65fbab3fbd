"""Ingestion of documents and extraction of triples."""

from sleuth.graphs.ingestion.folder_sync import SyncReport, apply_diff, compare_folder, follow_folder
from sleuth.graphs.ingestion.pipeline import IngestProgress, IngestReport, ingest, ingest_into
from sleuth.graphs.ingestion.triple_extraction import ExtractionContext, ExtractionReport, extract_all_triples

__all__ = [
    "ExtractionContext",
    "ExtractionReport",
    "IngestProgress",
    "IngestReport",
    "SyncReport",
    "apply_diff",
    "compare_folder",
    "extract_all_triples",
    "follow_folder",
    "ingest",
    "ingest_into",
]
