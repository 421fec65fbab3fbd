"""Both stores of runs: SQLite below SLEUTH_HOME, and Postgres."""

import pytest


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """As in SLEUTH_DATABASE_URL."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
