import logging
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from sleuth.studio.model_server.flags import ServeOptions
from sleuth.studio.model_server.server import ModelServerState, ServerFiles
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import MODEL_URL, Settings


def test_loader_classes_come_from_the_environment_by_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_LOADERS", '{".ipynb": "NotebookLoader", ".EPUB": "UnstructuredEPubLoader"}')
    assert Settings().loaders == {".ipynb": "NotebookLoader", ".epub": "UnstructuredEPubLoader"}


def test_line_end_of_a_secret_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("MODEL_KEY", "RERANKER_KEY", "API_KEYS", "DATABASE_URL", "MODEL")
    for name in names:
        monkeypatch.setenv(f"SLEUTH_{name}", " s3cret\r\n")
    values = Settings().model_dump(include={name.lower() for name in names})
    assert {getattr(value, "get_secret_value", lambda value=value: value)() for value in values.values()} == {"s3cret"}


def test_line_end_of_a_secret_of_an_application_is_no_part_of_it() -> None:
    given = Settings(model_key=SecretStr("s3cret\n"))
    assert given.model_key
    assert given.model_key.get_secret_value() == "s3cret"


SECRET = "https://anna:s3cret@example.org/v1"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        *((name, SECRET, "contains a name or a password") for name in ("model_url", "embedder", "knowledge_graph")),
        *(("chroma_url", SECRET, "contains a name or a password"), ("model_url", "http://127.0.0.1:99999/v1", "Port")),
        *(("model_url", "http://127.0.0.1:port/v1", "Port"), ("model_url", "http://[::1/v1", "Invalid IPv6")),
        *(("loaders", {suffix: "X"}, "is not a file suffix") for suffix in ("ipynb", "", ".", ".tar.gz")),
        *(("loaders", {suffix: "X"}, "is read as a corpus") for suffix in (".jsonl", ".JSONL")),
    ],
)
def test_unusable_value_is_refused(name: str, value: object, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason) as caught:
        Settings.model_validate({name: value})
    assert "s3cret" not in caught.value.errors()[0]["msg"]
    Settings.model_validate({"model_url": "https://example.org/v1/@latest"})


def test_unknown_variable_is_reported_once_with_nearest_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = {"sleuth_concurrency": "2", "SLEUTH_REQUIRE_ALL": "1", "SLEUTH_TEST_MODEL_URL": "x", "SLEUTH_EMPTY": ""}
    for name, value in {"SLEUTH_TIMOUT": "5", "SLEUTH_QXZ": "5", "OTHER_TIMOUT": "5", **known}.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert (Settings().timeout, Settings().concurrency) == (120, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "'SLEUTH_QXZ' is not a setting and is ignored.",
        "'SLEUTH_TIMOUT' is not a setting and is ignored. Did you mean SLEUTH_TIMEOUT?",
    ]


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


def test_user_folder_is_expanded_in_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names = ("home", "runs", "checker", "api_keys_file", "embedder", "knowledge_graph")
    Path("sleuth.toml").write_text("".join(f'{name} = "~/notes/x"\n' for name in names))
    assert {str(getattr(Settings(), name)) for name in names} == {str(tmp_path / "notes" / "x")}
    other = Settings.model_validate(dict.fromkeys(names, "notes~/x"))
    assert {str(getattr(other, name)) for name in names} == {"notes~/x"}


HOLD = "import fcntl, sys; fcntl.lockf(f := open(sys.argv[1], 'w'), fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"


def test_model_url_is_that_of_the_running_server_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLEUTH_MODEL_URL", raising=False)
    files = ServerFiles(tmp_path)
    files.prepare()
    files.write(ModelServerState(pid=1, options=ServeOptions(port=47299), started=0))
    assert Settings(home=tmp_path).model_url == MODEL_URL
    command = [sys.executable, "-c", HOLD, str(files.running)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline()
        assert Settings(home=tmp_path).model_url == "http://127.0.0.1:47299/v1"
        assert Settings(home=tmp_path / "other").model_url == MODEL_URL
        for damaged in ("", "{", "[]", '{"options": {"port": "x"}}'):
            files.state.write_text(damaged)
            assert Settings(home=tmp_path).model_url == MODEL_URL
        monkeypatch.setenv("SLEUTH_MODEL_URL", "http://127.0.0.1:11434/v1")
        assert Settings(home=tmp_path).model_url == "http://127.0.0.1:11434/v1"
        holder.communicate()
