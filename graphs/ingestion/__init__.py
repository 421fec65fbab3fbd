"""Ingestion of documents and extraction of triples, as graphs."""

from sleuth.graphs.ingestion.graph import IngestProgress, IngestReport, ingest, ingest_into
from sleuth.graphs.ingestion.triple_extraction import ExtractionContext, ExtractionState, extract_all_triples

__all__ = [
    "ExtractionContext",
    "ExtractionState",
    "IngestProgress",
    "IngestReport",
    "extract_all_triples",
    "ingest",
    "ingest_into",
]
