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

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("server", "answers", "expected"),
    [
        (ollama(), ["", "", ""], {"embedder": "all-MiniLM-L6-v2"}),
        (ollama(), ["1", "2", ""], {"embedder": "none"}),
        (ollama(), ["", "BAAI/bge-small-en-v1.5", ""], {"embedder": "BAAI/bge-small-en-v1.5"}),
        (lm_studio(), ["", "none", ""], {"embedder": "none"}),
    ],
)
async def test_init_writes_the_answers(
    server: ModelServer,
    answers: list[str],
    expected: dict[str, str],
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    async with serving(server):
        monkeypatch.setenv("SLEUTH_MODEL_URL", server.url)
        done = await asyncio.to_thread(CliRunner().invoke, app, ["init"], input="\n".join([*answers, ""]))
    assert done.exit_code == 0, done.output
    assert tomllib.loads(FILE.read_text()) == {"model_url": server.url, **expected}
    assert "Next: sleuth ingest FOLDER" in done.output


async def test_init_ingests_the_folder_and_asks_for_one_of_several_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLEUTH_HOME", str(tmp_path / "home"))
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "light.txt").write_text("Edric Gannow built the Pellowrig Light.")
    server = ModelServer(models=[{"id": "small"}, {"id": "large"}])
    async with serving(server):
        monkeypatch.setenv("SLEUTH_MODEL_URL", server.url)
        done = await asyncio.to_thread(CliRunner().invoke, app, ["init"], input="1\n2\nnone\npapers\n")
    assert done.exit_code == 0, done.output
    assert tomllib.loads(FILE.read_text()) == {"model_url": server.url, "model": "large", "embedder": "none"}
    assert "1 added" in done.output
    assert "Next: sleuth ask QUESTION" in done.output


async def test_init_yes_takes_the_first_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    server = ModelServer(models=[{"id": "text-embed"}, {"id": "small"}, {"id": "large"}])
    async with serving(server):
        monkeypatch.setenv("SLEUTH_MODEL_URL", server.url)
        done = await asyncio.to_thread(CliRunner().invoke, app, ["init", "--yes"])
    assert done.exit_code == 0, done.output
    written = {"model_url": server.url, "model": "small", "embedder": "all-MiniLM-L6-v2"}
    assert tomllib.loads(FILE.read_text()) == written


async def test_server_that_does_not_answer_is_not_found() -> None:
    assert await find_servers([f"http://127.0.0.1:{free_port()}/v1"]) == {}
