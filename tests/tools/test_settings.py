import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from sleuth.studio.model_server.flags import ServeOptions
from sleuth.studio.model_server.process import ModelServerState, ServerFiles, identify
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import MODEL_URL, Settings


def test_loader_classes_come_from_the_environment_by_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_LOADERS", '{".ipynb": "NotebookLoader", ".EPUB": "UnstructuredEPubLoader"}')
    assert Settings().loaders == {".ipynb": "NotebookLoader", ".epub": "UnstructuredEPubLoader"}


@pytest.mark.parametrize("name", ["model_url", "embedder", "knowledge_graph", "chroma_url"])
def test_address_with_a_password_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="contains a name or a password") as caught:
        Settings.model_validate({name: "https://anna:s3cret@example.org/v1"})
    assert "s3cret" not in caught.value.errors()[0]["msg"]
    Settings.model_validate({name: "https://example.org/v1/@latest"})


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://127.0.0.1:port/v1", "http://[::1/v1"])
def test_address_without_usable_port_or_host_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match=r"Port|Invalid IPv6"):
        Settings.model_validate({"model_url": url})


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        ("ipynb", "is not a file suffix"),
        ("", "is not a file suffix"),
        (".", "is not a file suffix"),
        (".tar.gz", "is not a file suffix"),
        (".jsonl", "is read as a corpus"),
        (".JSONL", "is read as a corpus"),
    ],
)
def test_invalid_loader_suffix_is_refused(suffix: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Settings(loaders={suffix: "NotebookLoader"})


def test_unknown_variable_is_reported_once_with_nearest_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLEUTH_TIMOUT", "5")
    monkeypatch.setenv("SLEUTH_QXZ", "5")
    with caplog.at_level(logging.WARNING):
        assert Settings().timeout == 120
        Settings()
    assert [record.getMessage() for record in caplog.records] == [
        "'SLEUTH_QXZ' is not a setting and is ignored.",
        "'SLEUTH_TIMOUT' is not a setting and is ignored. Did you mean SLEUTH_TIMEOUT?",
    ]


def test_known_variables_are_not_reported(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    values = {"SLEUTH_TIMEOUT": "5", "sleuth_concurrency": "2", "SLEUTH_REQUIRE_ALL": "1", "SLEUTH_TEST_MODEL_URL": "x"}
    for name, value in {**values, "SLEUTH_EMPTY": "", "OTHER_TIMOUT": "5"}.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert Settings().concurrency == 2
    assert caplog.records == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("timout = 5\n", r"has 'timout', which is not a setting. Did you mean timeout\?"),
        ("SLEUTH_HOME = '/tmp'\n", r"has 'SLEUTH_HOME', which is not a setting. Did you mean home\?"),
        ("[qxz]\nhome = '/tmp'\n", "has 'qxz', which is not a setting.$"),
        ("timeout = \n", "cannot be read: .*line 1"),
    ],
)
def test_settings_file_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, reason: str
) -> None:
    (tmp_path / "sleuth.toml").write_text(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=reason):
        Settings()


def test_settings_file_in_the_working_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sleuth.toml").write_text('timeout = 5\nmodels = {reader = "small"}\n')
    monkeypatch.chdir(tmp_path)
    assert (Settings().timeout, Settings().models) == (5, {"reader": "small"})


@pytest.mark.parametrize("name", ["home", "runs", "checker", "api_keys_file", "embedder", "knowledge_graph"])
def test_user_folder_is_expanded_in_paths(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("sleuth.toml").write_text(f'{name} = "~/notes/x"\n')
    assert str(getattr(Settings(), name)) == str(tmp_path / "notes" / "x")
    assert str(getattr(Settings.model_validate({name: "notes~/x"}), name)) == "notes~/x"


def store_server(home: Path, **changes: object) -> None:
    """Store the state of a model server whose process is this one, with changes to its process."""
    process = identify(os.getpid())
    state = ModelServerState(process=replace(process, **changes), options=ServeOptions(port=47299), started=0)
    files = ServerFiles(home)
    files.prepare()
    files.write(state)


def test_model_url_is_that_of_the_running_server_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLEUTH_MODEL_URL", raising=False)
    assert Settings(home=tmp_path).model_url == MODEL_URL
    store_server(tmp_path)
    assert Settings(home=tmp_path).model_url == "http://127.0.0.1:47299/v1"
    assert Settings(home=tmp_path / "other").model_url == MODEL_URL
    monkeypatch.setenv("SLEUTH_MODEL_URL", "http://127.0.0.1:11434/v1")
    assert Settings(home=tmp_path).model_url == "http://127.0.0.1:11434/v1"


@pytest.mark.parametrize("changes", [{"ticks": 1}, {"boot": "an earlier one"}, {"pid": 2**22 + 1}])
def test_model_url_of_a_dead_server_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    monkeypatch.delenv("SLEUTH_MODEL_URL", raising=False)
    store_server(tmp_path, **changes)
    assert Settings(home=tmp_path).model_url == MODEL_URL


@pytest.mark.parametrize("text", ["", "{", "[]", '{"process": 1, "options": {"port": 1}}'])
def test_model_url_with_a_damaged_state_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.delenv("SLEUTH_MODEL_URL", raising=False)
    ServerFiles(tmp_path).prepare()
    ServerFiles(tmp_path).state.write_text(text)
    assert Settings(home=tmp_path).model_url == MODEL_URL
