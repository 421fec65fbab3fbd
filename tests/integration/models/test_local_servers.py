"""Context windows of Ollama, llama.cpp and LM Studio, and prompts that they cut."""

import logging
from pathlib import Path
from typing import Any

import pytest
from local_servers import LOCAL, listing, llama_cpp, lm_studio, ollama
from model_server import ModelServer, completion, connected, request, serving
from process import free_port
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sleuth.agents.llm.client import ESTIMATED, LLMClient
from sleuth.agents.llm.server_features import CUT
from sleuth.studio.cli.commands.doctor import examine, examine_model
from sleuth.tools.settings import Settings


@pytest.mark.parametrize(
    ("server", "chosen", "window", "remedy"),
    [
        (ollama(), {}, 4096, "Start Ollama with OLLAMA_CONTEXT_LENGTH=16384"),
        (ollama(window=None), {}, 4096, "Start Ollama with OLLAMA_CONTEXT_LENGTH=16384"),
        (ollama(window=None, parameters="num_keep   24\nnum_ctx    6000"), {}, 6000, "or set num_ctx in the model's"),
        (ollama(window=32_768, loaded=True), {}, 32_768, None),
        (llama_cpp(), {}, 2048, "Start llama-server with --ctx-size 16384"),
        (llama_cpp(65_536), {}, 65_536, None),
        (lm_studio(), {"model": "llama-3.1-8b"}, 4096, "lms load llama-3.1-8b --context-length 16384"),
        (lm_studio(20_000), {"model": "llama-3.1-8b"}, 20_000, None),
    ],
)
async def test_local_server_is_asked_for_the_window_and_a_small_one_reported(
    server: ModelServer, chosen: dict[str, Any], window: int, remedy: str | None, *, tmp_path: Path, caplog: Any
) -> None:
    async with connected(server, tmp_path, **chosen) as model:
        assert model.context_window == window
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(messages) == (remedy is not None)
    if remedy is not None:
        assert remedy in messages[0]
        assert f"a context window of {window:,} tokens in " in messages[0]


async def test_known_server_whose_model_was_unloaded_loads_it_first(tmp_path: Path) -> None:
    server = ollama(window=24_000)
    async with serving(server):
        settings = Settings(model_url=server.url, home=tmp_path)
        async with LLMClient.open(settings):
            pass
        server.probes = 0  # Ollama unloads a model after five idle minutes
        async with LLMClient.open(settings) as model:
            assert model.context_window == 24_000
    assert server.probes == 1


async def refused(request: Request) -> Response:
    return JSONResponse({"error": "forbidden"}, 403)


async def test_server_that_refuses_unknown_paths_has_the_default_window(tmp_path: Path) -> None:
    server = ModelServer(models=listing("gpt"), routes=[Route("/api/ps", refused)])
    async with connected(server, tmp_path) as model:
        assert model.context_window == 8192


LONG = "A long passage about the lamp of Varn. " * 200


def counted(tokens: int) -> dict[str, Any]:
    reply = completion()
    reply["usage"] = {"prompt_tokens": tokens, "completion_tokens": 3}
    return reply


@pytest.mark.parametrize(
    ("server", "text", "tokens", "is_cut"),
    [
        (ModelServer(supports=LOCAL, models=listing("plain")), LONG, 1800, False),
        (ModelServer(supports=LOCAL, models=listing("plain")), LONG, 514, True),
        (ModelServer(supports=LOCAL, models=listing("plain")), LONG, 0, False),
        (ModelServer(supports=LOCAL, models=listing("plain")), "Where is Varn?", 1, False),
        (ModelServer(supports=LOCAL, models=listing("plain")), LONG.replace(" ", " " * 40), 1800, False),
        (ollama(window=2000), LONG, 2000, True),
        (ModelServer(models=listing("plain")), LONG, 514, False),
    ],
    ids=["whole", "half of 1,024", "no usage", "short", "white space", "whole window", "exact server"],
)
async def test_call_whose_prompt_the_server_cut_has_a_warning(
    server: ModelServer, text: str, tokens: int, is_cut: bool, tmp_path: Path
) -> None:
    server.script.append(counted(tokens))
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(text))
    assert reply["warnings"] == ([CUT] * is_cut if tokens else [ESTIMATED])


async def test_doctor_model_names_what_a_local_server_lacks(tmp_path: Path) -> None:
    server = ollama()
    async with serving(server):
        findings = {each.name: each for each in await examine_model(Settings(model_url=server.url, home=tmp_path))}
    assert all(finding.ok for finding in findings.values())
    assert "4,096 tokens (Ollama)" in findings["context window"].detail
    assert "OLLAMA_CONTEXT_LENGTH" in findings["context window"].fix
    assert "more quotes fail" in findings["quotes"].detail and findings["quotes"].fix


async def test_doctor_model_without_a_server_is_one_failed_finding(tmp_path: Path) -> None:
    (finding,) = await examine_model(Settings(model_url=f"http://127.0.0.1:{free_port()}/v1", home=tmp_path))
    assert not finding.ok and "No model server answers" in finding.detail


async def test_doctor_lists_the_window_of_a_loaded_model_with_the_remedy(tmp_path: Path) -> None:
    server = ollama(loaded=True)
    async with serving(server):
        found = {each.name: each for each in await examine(Settings(model_url=server.url, home=tmp_path))}
    assert "qwen3:8b (4096 tokens: Start Ollama with OLLAMA_CONTEXT_LENGTH=16384" in found["model server"].detail
    assert server.probes == 0
