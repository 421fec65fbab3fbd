"""A collection of documents: ingestion, search, and synchronization of the indexes with the catalogue."""

from sleuth.tools.collection.batch_reader import corpus_entry, never_stopped
from sleuth.tools.collection.collection import Collection
from sleuth.tools.collection.folder_diff import FolderDiff
from sleuth.tools.collection.index_set import INDEXING_LOCK, OnIndexed
from sleuth.tools.collection.originals import media_type_of
from sleuth.tools.collection.readers import make_passage_embedder

__all__ = [
    "INDEXING_LOCK",
    "Collection",
    "FolderDiff",
    "OnIndexed",
    "corpus_entry",
    "make_passage_embedder",
    "media_type_of",
    "never_stopped",
]
