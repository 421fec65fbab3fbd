import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage import disk
from sleuth.tools.storage.database import (
    catalogue_url,
    database_address,
    is_away,
    is_refused,
    open_engine,
    transaction,
)


@pytest.mark.parametrize("name", ["p%20q", "v?1", "a&b=c", "a b", "a#b", "Überweg", "a;b", "a@b:c"])
def test_path_of_any_characters_opens_that_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with open_engine(catalogue_url(tmp_path / name, None)).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (word TEXT)")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "catalogue.db").stat().st_size > 0


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgres_url_spellings_are_accepted(scheme: str) -> None:
    assert catalogue_url(Path(), f"{scheme}://u:p@h/db") == "postgresql+psycopg://u:p@h/db"


@pytest.mark.parametrize("url", ["mysql://h/db", "nonsense", ""])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="postgresql://"):
        catalogue_url(Path(), url)
    with pytest.raises(UsageError, match="SLEUTH_DATABASE_URL"):
        open_engine("postgresql+psycopg://host:port/db")


def test_failed_write_on_a_full_disk_states_how_to_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(catalogue_url(tmp_path, None))
    for limit, remedy in (
        (0, "put a backup of"),
        (1 << 62, "delete the folders `keywords` and `mentions` in SLEUTH_HOME"),
    ):
        monkeypatch.setattr(disk, "_FULL", limit)
        with pytest.raises(StoreError, match=remedy), transaction(engine, write=True) as connection:
            connection.exec_driver_sql("INSERT INTO missing VALUES (1)")


class _Reply(Exception):
    """An error of a driver with its SQLSTATE."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("no")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("kind", "state", "refused"),
    [
        (OperationalError, "54000", True),
        (DBAPIError, "22021", True),
        (OperationalError, "57P01", False),
        (OperationalError, None, False),
    ],
)
def test_refused_values_are_no_outage(kind: type[DBAPIError], state: str | None, refused: bool) -> None:
    error = StoreError("The catalogue cannot be written.")
    error.__cause__ = kind("INSERT", None, _Reply(state))
    assert (is_refused(error), is_away(error)) == (refused, not refused)
    error.__cause__ = IntegrityError("INSERT", None, sqlite3.IntegrityError("UNIQUE constraint failed"))
    assert (is_refused(error), is_away(error)) == (True, False)


@pytest.mark.parametrize("url", ["postgresql://u:one@two@h/x", "postgresql://u:one@h:two@h/x", "postgresql://h:two/x"])
def test_url_that_cannot_be_parsed_is_not_quoted(url: str) -> None:
    with pytest.raises(UsageError, match="%40") as raised:
        catalogue_url(Path(), url)
    assert not re.search("one|two", str(raised.value))


@pytest.mark.parametrize("password", ["p/w", "p#w", "p?w", "p:w"])
def test_address_of_a_database_has_no_password(password: str) -> None:
    url = f"postgresql://u:{password}@h:5/x?sslpassword=w"
    assert database_address(url) == "postgresql://h:5/x"
    assert Settings(database_url=url).without_secrets()["database_url"] == "postgresql://h:5/x"


def test_deleted_file_is_neither_written_nor_created(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.db"
    engine = open_engine(catalogue_url(tmp_path, None))
    with transaction(engine, write=True) as connection:
        connection.exec_driver_sql("CREATE TABLE kept (word TEXT)")
    file.unlink()
    with transaction(open_engine(catalogue_url(tmp_path, None))):  # another process creates one
        pass
    for change in (lambda: None, file.unlink, engine.dispose):
        change()
        problem = pytest.raises(StoreError, match=r"catalogue\.db was deleted or replaced.*sleuth restore")
        with problem as raised, transaction(engine):
            pytest.fail("it is used")
        assert is_away(raised.value)
    assert not file.exists()
