"""SQL catalogue, archive of texts, triples, and locks on files."""

from sleuth.tools.storage.archive import Archive, MemoryArchive
from sleuth.tools.storage.catalogue import Catalogue, Listed
from sleuth.tools.storage.database import (
    catalogue_url,
    in_thread,
    is_database_error,
    make_tables,
    open_engine,
    transaction,
)
from sleuth.tools.storage.locks import HomeLock, LockMode, hold, require_restored
from sleuth.tools.storage.triples import MemoryTriples, SqlTriples, Triple, TripleStore

__all__ = [
    "Archive",
    "Catalogue",
    "HomeLock",
    "Listed",
    "LockMode",
    "MemoryArchive",
    "MemoryTriples",
    "SqlTriples",
    "Triple",
    "TripleStore",
    "catalogue_url",
    "hold",
    "in_thread",
    "is_database_error",
    "make_tables",
    "open_engine",
    "require_restored",
    "transaction",
]
