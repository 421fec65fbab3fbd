"""Catalogues of older releases, which have no metadata."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from entries import entry

from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import sqlite_url
from sleuth.tools.storage.filters import parse_filter


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Catalogue]:
    """A catalogue with schema 2, as release 0.2 wrote it."""
    path = tmp_path / "catalogue.db"
    made = Catalogue(sqlite_url(path), owner="local", collection="default")
    made.put_documents([entry("light", "The light was lit."), entry("mill", "The mill ran.")])
    made.close()
    with closing(sqlite3.connect(path)) as database, database:
        for name in ("author", "date", "language", "tags"):
            database.execute(f"ALTER TABLE sleuth_documents DROP COLUMN {name}")
        database.execute("ALTER TABLE sleuth_collections DROP COLUMN vectors_version")
        database.execute("ALTER TABLE sleuth_passages DROP COLUMN places")
        database.execute("UPDATE sleuth_meta SET value = '2' WHERE key = 'schema_version'")
    catalogue = Catalogue(sqlite_url(path), owner="local", collection="default")
    yield catalogue
    catalogue.close()


def test_catalogue_of_an_older_release_has_no_metadata(old: Catalogue) -> None:
    assert [(each.id, each.language, each.tags) for each in old.list_documents()] == [
        ("light", None, None),
        ("mill", None, None),
    ]
    assert old.get_document("light").author is None
    assert old.matching_passages(parse_filter("language=en")) == frozenset()
    assert len(old.matching_passages(parse_filter("id=light"))) == 1


def test_unchanged_document_without_metadata_stays_unchanged(old: Catalogue) -> None:
    head = old.head()
    assert old.put_documents([entry("light", "The light was lit.")]).unchanged == 1
    assert old.head() == head


def test_documents_with_passages_of_several_places_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    made = Catalogue(sqlite_url(path), owner="local", collection="default")
    made.put_documents([entry("light", "The light was lit."), entry("mill", "The mill ran.")])
    made.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE sleuth_collections DROP COLUMN vectors_version")
        database.execute("ALTER TABLE sleuth_passages DROP COLUMN places")
        database.execute("UPDATE sleuth_passages SET location = 'p. 1–2' WHERE document_id = 'mill'")
        database.execute("UPDATE sleuth_meta SET value = '3' WHERE key = 'schema_version'")
    with closing(Catalogue(sqlite_url(path), owner="local", collection="default")) as again:
        found = again.compare([entry("light", "The light was lit."), entry("mill", "The mill ran.")])
        assert found == {"light": "unchanged", "mill": "updated"}
        assert [each.places for each in again.passages_of("mill")] == [""]
