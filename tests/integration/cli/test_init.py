"""`sleuth init` next to a local model server."""

import asyncio
import tomllib
from pathlib import Path

import pytest
from local_servers import lm_studio, ollama
from model_server import ModelServer, serving
from process import free_port
from typer.testing import CliRunner

from sleuth.studio.cli.app import app
from sleuth.studio.cli.commands.init import FILE, find_servers
from sleuth.tools.errors import UsageError

SEVERAL = [{"id": "text-embed"}, {"id": "small"}, {"id": "large"}]


@pytest.mark.parametrize(
    ("server", "answers", "expected", "told"),
    [
        (ollama(), "\n\n\n", {"embedder": "all-MiniLM-L6-v2"}, "Next: sleuth ingest FOLDER"),
        (ollama(), "1\n2\n\n", {"embedder": "none"}, "Next: sleuth ingest FOLDER"),
        (ollama(), "\nBAAI/bge-small-en-v1.5\n\n", {"embedder": "BAAI/bge-small-en-v1.5"}, "Next: sleuth ingest"),
        (lm_studio(), "\nnone\n\n", {"embedder": "none"}, "Next: sleuth ingest FOLDER"),
        (ModelServer(models=SEVERAL), "1\n2\nnone\npapers\n", {"model": "large", "embedder": "none"}, "1 added"),
        (ModelServer(models=SEVERAL), None, {"model": "small", "embedder": "all-MiniLM-L6-v2"}, "Next: sleuth"),
    ],
)
async def test_init_writes_the_answers(
    server: ModelServer,
    answers: str | None,
    expected: dict[str, str],
    told: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without answers, `--yes` takes the first of everything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLEUTH_HOME", str(tmp_path / "home"))
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "light.txt").write_text("Edric Gannow built the Pellowrig Light.")
    async with serving(server):
        monkeypatch.setenv("SLEUTH_MODEL_URL", server.url)
        command = ["init"] if answers else ["init", "--yes"]
        done = await asyncio.to_thread(CliRunner().invoke, app, command, input=answers)
    assert done.exit_code == 0, done.output
    assert tomllib.loads(FILE.read_text()) == {"model_url": server.url, **expected}
    assert told in done.output


async def test_init_without_a_terminal_names_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLEUTH_MODEL_URL", f"http://127.0.0.1:{free_port()}/v1")
    done = await asyncio.to_thread(CliRunner().invoke, app, ["init"], input="")
    assert isinstance(done.exception, UsageError)
    assert "sleuth init --yes" in str(done.exception)
    assert not FILE.exists()


async def test_server_that_does_not_answer_is_not_found() -> None:
    assert await find_servers([f"http://127.0.0.1:{free_port()}/v1"]) == {}
