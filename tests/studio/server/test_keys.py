"""API keys from a file that changes."""

import logging
import os
from pathlib import Path

import pytest

from sleuth.studio.server.middleware.auth import Keys
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings


def write(file: Path, text: str) -> None:
    """Write a file with another time than before, also where a clock is coarse."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(text)
    os.utime(file, ns=(before + 1_000_000_000, before + 1_000_000_000))


def owners(keys: Keys, *secrets: str) -> list[str | None]:
    return [key.owner if (key := keys.find(each)) else None for each in secrets]


def test_key_is_rotated_while_the_server_runs(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    write(file, "# of the team\nanna:old\n\nben:other\n")
    keys = Keys(Settings(api_keys="root:fixed", api_keys_file=file))
    assert owners(keys, "old", "other", "fixed", "new") == ["anna", "ben", "root", None]
    write(file, "anna:old\nanna:new\n")
    assert owners(keys, "old", "new", "other", "fixed") == ["anna", "anna", None, "root"]
    write(file, "anna:new\n")
    assert owners(keys, "old", "new") == [None, "anna"]


@pytest.mark.parametrize("given", ["anna:one,ben:two\n", "anna:one\nben:two\n", "anna:one\r\n\r\nben:two\r\n"])
def test_line_ends_are_no_part_of_a_key(tmp_path: Path, given: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(given.replace(",", "\n").encode())
    for settings in (Settings(api_keys=given), Settings(api_keys_file=file)):
        assert owners(Keys(settings), "one", "two", "") == ["anna", "ben", None]


@pytest.mark.parametrize("broken", ["anna\n", "", None, "anna:new\nben:new\n"])
def test_broken_file_leaves_the_keys_of_before(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    write(file, "anna:secret-1\n")
    keys = Keys(Settings(api_keys_file=file))
    if broken is None:
        file.unlink()
    else:
        write(file, broken)
    with caplog.at_level(logging.ERROR):
        assert owners(keys, "secret-1") == ["anna"]
    assert "stay valid" in caplog.text
    assert "secret-1" not in caplog.text


@pytest.mark.parametrize("text", ["", "# none\n", "anna\n"])
def test_server_does_not_start_without_a_key_in_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(UsageError, match="SLEUTH_API_KEYS_FILE"):
        Keys(Settings(api_keys_file=file))
    with pytest.raises(UsageError, match="cannot be read"):
        Keys(Settings(api_keys_file=tmp_path / "missing"))
