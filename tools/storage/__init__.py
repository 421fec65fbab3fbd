"""SQL catalogue, archive of texts, triples, and locks on files."""

from sleuth.tools.storage.archive import Archive, MemoryArchive, SqlArchive
from sleuth.tools.storage.catalogue import Catalogue, Difference, Entry, Listed, Stored
from sleuth.tools.storage.database import (
    catalogue_url,
    in_thread,
    is_away,
    is_database_error,
    is_refused,
    make_tables,
    open_engine,
    sqlite_url,
    transaction,
)
from sleuth.tools.storage.filters import parse_filter
from sleuth.tools.storage.home import RESTORING, require_restored
from sleuth.tools.storage.locks import HomeLock, LockMode, hold, is_stale
from sleuth.tools.storage.schema import SCHEMA_VERSION, collections, documents, meta
from sleuth.tools.storage.triples import MemoryTriples, ModelCoverage, SqlTriples, Triple, TripleStore

__all__ = [
    "RESTORING",
    "SCHEMA_VERSION",
    "Archive",
    "Catalogue",
    "Difference",
    "Entry",
    "HomeLock",
    "Listed",
    "LockMode",
    "MemoryArchive",
    "MemoryTriples",
    "ModelCoverage",
    "SqlArchive",
    "SqlTriples",
    "Stored",
    "Triple",
    "TripleStore",
    "catalogue_url",
    "collections",
    "documents",
    "hold",
    "in_thread",
    "is_away",
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
