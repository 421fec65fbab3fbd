"""A collection of documents: ingestion, search, and synchronization of the indexes with the catalogue."""

from sleuth.tools.collection.collection import Collection

__all__ = ["Collection"]
