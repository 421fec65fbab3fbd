"""The parts of a home: what a backup contains, and what is derived from it."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from sleuth.graphs.persistence import runs_url
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue_url

CHROMA = "chroma"
CHROMA_DATABASE = "chroma/chroma.sqlite3"
FOLDERS = ("originals", "uploads")
"""Folders that are copied: original files of documents, and uploads that wait to be ingested."""

FILES = ("thresholds.json", "attributes.npz")
"""Results of calibration and training."""

DERIVED = ("keywords", "mentions", "names", "ingest", "examples")
"""Folders that are built again when they are needed; `ingest` has the positions of interrupted ingests."""

COUNTS = {"documents": "sleuth_documents", "passages": "sleuth_passages", "runs": "sleuth_threads"}
"""Tables whose rows are counted in the manifest."""

SCHEMAS = {
    "catalogue": ("sleuth_meta", "SELECT value FROM sleuth_meta WHERE key = 'schema_version'"),
    "runs": ("sleuth_runs_version", "SELECT max(version) FROM sleuth_runs_version"),
}
"""Tables with the versions of schemas, and the queries for them."""


def describe(
    tables: Collection[str], scalar: Callable[[str], Any], counts: dict[str, int], schemas: dict[str, int]
) -> None:
    """Add the numbers of rows and the schema versions of the tables that a database has."""
    for name, table in COUNTS.items():
        if table in tables:
            counts[name] = int(scalar(f"SELECT count(*) FROM {table}"))  # noqa: S608 - a constant
    for name, (table, query) in SCHEMAS.items():
        if table in tables:
            schemas[name] = int(scalar(query))


def databases(settings: Settings) -> dict[str, Path]:
    """Return the SQLite databases of a home by their names in the archive; they need not exist."""
    urls = catalogue_url(settings.home, settings.database_url), runs_url(settings)
    files = [Path(url.database) for url in urls if isinstance(url, URL) and url.database]
    return {file.name: file for file in files}
