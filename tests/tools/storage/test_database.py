from pathlib import Path

import pytest
from sqlalchemy import make_url

from sleuth.tools.errors import UsageError
from sleuth.tools.storage.database import catalogue_url, open_engine


def test_without_a_url_the_catalogue_is_a_file_at_home() -> None:
    assert make_url(catalogue_url(Path("/srv/x"), None)).database == "/srv/x/catalogue.db"


@pytest.mark.parametrize("name", ["p%20q", "v?1", "a&b=c", "a b", "a#b", "Überweg", "a;b", "a@b:c"])
def test_a_path_of_any_characters_is_the_file_that_is_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with open_engine(catalogue_url(tmp_path / name, None)).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (word TEXT)")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "catalogue.db").stat().st_size > 0


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_way_to_say_postgres_is_understood(scheme: str) -> None:
    assert catalogue_url(Path(), f"{scheme}://u:p@h/db") == "postgresql+psycopg://u:p@h/db"


@pytest.mark.parametrize("url", ["mysql://h/db", "nonsense", ""])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="postgresql://"):
        catalogue_url(Path(), url)


def test_a_url_that_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(UsageError, match="SLEUTH_DATABASE_URL"):
        open_engine("postgresql+psycopg://host:port/db")
