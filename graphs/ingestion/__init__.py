"""Ingestion of documents and extraction of triples, as graphs."""

from sleuth.graphs.ingestion.graph import IngestProgress, IngestReport, ingest, read_in
from sleuth.graphs.ingestion.triple_extraction import ReadingContext, ReadingState, read_passages

__all__ = ["IngestProgress", "IngestReport", "ReadingContext", "ReadingState", "ingest", "read_in", "read_passages"]
