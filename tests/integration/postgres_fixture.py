"""A Postgres of our own for the whole session, in a temporary folder, without TCP."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_NOT_FOUND = "Postgres is not installed: apt-get install postgresql postgresql-contrib"


def _program(name: str) -> str | None:
    """initdb and pg_ctl are often not on the path: Debian keeps them by version."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(versions[0]) if versions else None)


def _run(*command: str) -> None:
    # Postgres refuses to run as root.
    ordinary = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*ordinary, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A URL as in SLEUTH_DATABASE_URL; SLEUTH_TEST_DATABASE_URL names a server that is there already."""
    if present := os.environ.get("SLEUTH_TEST_DATABASE_URL"):
        yield present
        return
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        if os.environ.get("SLEUTH_REQUIRE_ALL") == "1":
            pytest.fail(_NOT_FOUND)
        pytest.skip(_NOT_FOUND)
    with tempfile.TemporaryDirectory(prefix="sleuth-pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data = str(Path(folder) / "data")
        _run(initdb, "-D", data, "-U", "sleuth", "-A", "trust", "-E", "UTF8", "--no-sync")
        _run(pg_ctl, "-D", data, "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -h ''", "start")
        try:
            yield f"postgresql://sleuth@/postgres?host={folder}"
        finally:
            _run(pg_ctl, "-D", data, "-m", "immediate", "stop")
