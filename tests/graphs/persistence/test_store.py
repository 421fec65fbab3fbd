"""Errors of a store that cannot be used."""

import sqlite3

import psycopg
import pytest

from sleuth.graphs.persistence.store import open_store
from sleuth.tools.errors import StoreError, StoreTooNew
from sleuth.tools.settings import Settings
from sleuth.tools.storage.database import is_away, is_database_error


async def assert_refused(settings: Settings, reason: str, error: type[StoreError] = StoreError) -> None:
    with pytest.raises(error, match=reason):
        async with open_store(settings):
            pytest.fail("it was opened")


async def test_store_of_newer_release_is_unchanged(settings: Settings) -> None:
    async with open_store(settings):
        pass
    with sqlite3.connect(settings.home / "runs.sqlite") as connection:
        connection.execute("UPDATE sleuth_runs_version SET version = 99")
    connection.close()
    await assert_refused(settings, r"version 99, this one reads up to 1\): upgrade sleuth", StoreTooNew)


async def test_file_without_database_is_named(settings: Settings) -> None:
    settings.home.mkdir()
    (settings.home / "runs.sqlite").write_bytes(b"my diary" * 1000)
    await assert_refused(settings, r"runs\.sqlite cannot be read or written: .* backup")


async def test_damaged_pages_are_explained(settings: Settings) -> None:
    async with open_store(settings) as store:
        await store.archive.keep(f"text {number} {number % 7}" * 500 for number in range(200))
    file = settings.home / "runs.sqlite"
    pages = bytearray(file.read_bytes())
    pages[-len(pages) // 2 :] = b"\xff" * (len(pages) // 2)
    file.write_bytes(pages)
    with pytest.raises(StoreError, match=r"runs\.sqlite cannot be read or written: .* backup"):
        async with open_store(settings) as store:
            await store.archive.delete_all_but(set(), before=1)


async def test_home_that_cannot_be_created_is_named(settings: Settings) -> None:
    settings.home.write_text("a file")
    await assert_refused(settings, r"SLEUTH_HOME .* cannot be created")


@pytest.mark.parametrize("error", [psycopg.OperationalError("gone"), sqlite3.OperationalError("gone")])
async def test_lost_database_is_explained_in_one_line(settings: Settings, error: Exception) -> None:
    with pytest.raises(
        StoreError, match=r"cannot be read or written: gone\. What was saved before is not lost"
    ) as raised:
        async with open_store(settings):
            raise error
    assert is_away(error)
    assert is_away(raised.value)


async def test_other_errors_are_raised_unchanged(settings: Settings) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        async with open_store(settings):
            _ = 1 / 0
    assert not is_away(raised.value)
    assert not is_database_error(raised.value)


async def test_missing_runs_of_a_used_home_are_reported(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        async with open_store(settings) as store, store.locks.hold("a run"):
            pass
    assert caplog.messages == []
    (settings.home / "runs.sqlite").write_bytes(b"")
    async with open_store(settings):
        pass
    assert "runs.sqlite is missing or empty" in caplog.text
    assert "`sleuth restore`" in caplog.text


async def test_read_only_home_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(StoreError, match="SLEUTH_HOME must be a folder that can be written"):
        async with open_store(settings):
            raise sqlite3.OperationalError("attempt to write a readonly database")


@pytest.mark.parametrize("name", ["u:hunter2", "u"])
async def test_message_about_a_server_has_no_password(settings: Settings, name: str) -> None:
    url = f"postgresql://{name}@127.0.0.1:9/x?password=hunter2"
    with pytest.raises(StoreError, match=r"postgresql\+psycopg://127\.0\.0\.1:9/x cannot be") as raised:
        async with open_store(settings.model_copy(update={"database_url": url})):
            pytest.fail("it was opened")
    assert "hunter2" not in str(raised.value)
