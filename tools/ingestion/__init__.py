"""Ingestion: what changes the documents of a collection."""
