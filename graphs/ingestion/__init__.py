"""Ingestion of documents and extraction of triples."""
