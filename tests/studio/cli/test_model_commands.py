"""`sleuth model` without a server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sleuth.studio.cli.commands.model import default_port, model_app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_HOME", str(tmp_path))
    monkeypatch.delenv("SLEUTH_MODEL_URL", raising=False)


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://127.0.0.1:9100/v1", 9100),
        ("http://localhost:9100/v1", 9100),
        ("http://localhost/v1", 8000),
        ("https://models.example.org:9100/v1", 8000),
    ],
)
def test_default_port_follows_a_local_model_url(url: str, port: int) -> None:
    assert default_port(url) == port


def test_model_status_and_stop_without_a_server() -> None:
    status = CliRunner().invoke(model_app, ["status", "--json"])
    assert (status.exit_code, json.loads(status.stdout)["state"]) == (0, "stopped")
    stop = CliRunner().invoke(model_app, ["stop", "--json"])
    assert (stop.exit_code, json.loads(stop.stdout)) == (0, {"ended": 0})


def test_model_serve_print_command_only_prints_flags() -> None:
    result = CliRunner().invoke(model_app, ["serve", "--print-command", "org/big", "--gpus", "2", "--port", "8200"])
    assert result.exit_code == 0
    assert result.stdout.startswith("vllm serve org/big --port 8200 --tensor-parallel-size 2 ")
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--port", "0"], ["--dtype", "int4"], ["--model", "huge"], ["--max-model-len", "9000"]]
)
def test_model_serve_invalid_options_are_usage_errors(arguments: list[str]) -> None:
    assert CliRunner().invoke(model_app, ["serve", *arguments]).exit_code == 2
