"""`sleuth init`: the file that it writes."""

from pathlib import Path

import pytest

from sleuth.studio.cli.commands.init import FILE, init, to_toml
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings


def test_written_file_is_read_as_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"model_url": "http://127.0.0.1:11434/v1", "model": 'odd "name" \\ é', "embedder": "none"}
    FILE.write_text(to_toml(values), encoding="utf-8")
    settings = Settings()
    assert {name: getattr(settings, name) for name in values} == values


def test_existing_file_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text("embedder = 'none'\n")
    with pytest.raises(UsageError, match="sleuth init --force"):
        init(yes=True)
    assert FILE.read_text() == "embedder = 'none'\n"
