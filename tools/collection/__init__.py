"""A collection of documents: ingestion, search, and synchronization of the indexes with the catalogue."""

from sleuth.tools.collection.batch_reader import corpus_entry
from sleuth.tools.collection.collection import Collection, make_passage_embedder
from sleuth.tools.collection.folder_diff import FolderDiff
from sleuth.tools.collection.index_set import INDEXING_LOCK, OnIndexed
from sleuth.tools.collection.originals import media_type_of

__all__ = [
    "INDEXING_LOCK",
    "Collection",
    "FolderDiff",
    "OnIndexed",
    "corpus_entry",
    "make_passage_embedder",
    "media_type_of",
]
