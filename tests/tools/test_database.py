from pathlib import Path

import pytest

from sleuth.tools.database import catalogue_url, open_engine
from sleuth.tools.errors import UsageError


def test_without_a_url_the_catalogue_is_a_file_at_home() -> None:
    assert catalogue_url(Path("/srv/x"), None) == "sqlite:////srv/x/catalogue.db"


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
