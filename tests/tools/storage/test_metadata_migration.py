"""A catalogue of an older release; `test_golden` migrates one of the first."""

import sqlite3
from contextlib import closing
from pathlib import Path

from entries import entry

from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import sqlite_url


def test_documents_with_passages_of_several_places_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    made = Catalogue(sqlite_url(path), owner="local", collection="default")
    made.put_documents([entry("light", "The light was lit."), entry("mill", "The mill ran.")])
    made.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE sleuth_collections DROP COLUMN vectors_version")
        database.execute("ALTER TABLE sleuth_passages DROP COLUMN places")
        database.execute("ALTER TABLE sleuth_documents DROP COLUMN meta")
        database.execute("ALTER TABLE sleuth_documents DROP COLUMN given_meta")
        database.execute("UPDATE sleuth_passages SET location = 'p. 1–2' WHERE document_id = 'mill'")
        database.execute("UPDATE sleuth_meta SET value = '3' WHERE key = 'schema_version'")
    with closing(Catalogue(sqlite_url(path), owner="local", collection="default")) as again:
        found = again.compare([entry("light", "The light was lit."), entry("mill", "The mill ran.")])
        assert found == {"light": "unchanged", "mill": "updated"}
        assert [each.places for each in again.passages_of("mill")] == [""]
