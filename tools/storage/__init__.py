"""SQL catalogue, archive of texts, triples, and locks on files."""

from sleuth.tools.storage.archive import Archive, MemoryArchive, SqlArchive
from sleuth.tools.storage.catalogue import Catalogue, Difference, Entry, Stored
from sleuth.tools.storage.database import (
    catalogue_url,
    in_thread,
    is_away,
    is_damaged,
    is_database_error,
    is_refused,
    make_tables,
    open_engine,
    sqlite_url,
    transaction,
)
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.storage.home import RESTORING, require_restored
from sleuth.tools.storage.locks import LivenessFile, LockMode, hold, is_stale
from sleuth.tools.storage.metadata import Listed
from sleuth.tools.storage.schema import SCHEMA_VERSION, collections, documents, meta
from sleuth.tools.storage.triples import MemoryTriples, ModelCoverage, SqlTriples, Triple, TripleStats, TripleStore

__all__ = [
    "RESTORING",
    "SCHEMA_VERSION",
    "Archive",
    "Catalogue",
    "Difference",
    "Entry",
    "Listed",
    "LivenessFile",
    "LockMode",
    "MemoryArchive",
    "MemoryTriples",
    "ModelCoverage",
    "SqlArchive",
    "SqlTriples",
    "Stored",
    "Triple",
    "TripleStats",
    "TripleStore",
    "catalogue_url",
    "collections",
    "documents",
    "hold",
    "in_thread",
    "is_away",
    "is_damaged",
    "is_database_error",
    "is_refused",
    "is_stale",
    "make_tables",
    "meta",
    "open_engine",
    "parse_filter",
    "require_restored",
    "sqlite_url",
    "transaction",
]
