"""A collection of documents: ingest, search, keep indexes in step with the catalogue."""

from sleuth.tools.collection.batch_reader import Place, corpus_entry, never
from sleuth.tools.collection.collection import Library
from sleuth.tools.collection.index_set import OnIndexed

__all__ = ["Library", "OnIndexed", "Place", "corpus_entry", "never"]
