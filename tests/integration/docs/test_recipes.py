"""The recipes in docs/how-to for agents and Open WebUI, with the packages of PyPI that they name and a scripted model.

The packages are not locked: each recipe gets an environment of its own in .cache, with the versions of the page.
"""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_scene import WithAgent, archive, script, talking
from filelock import FileLock
from mcp import Client, StdioServerParameters
from process import SLEUTH, answers, free_port, missing, running_beside
from scripted_backend import Proxy, proxying
from serve_scene import QUESTION, Oracle

import sleuth
from sleuth.graphs.registry import METHODS

ROOT = Path(__file__).parents[3]
HOW_TO = ROOT / "docs" / "how-to"
PAGE = (HOW_TO / "agents.md").read_text(encoding="utf-8")
SOURCES = str(Path(sleuth.__file__).parents[1])
KEY = "S3cret"
NEEDS_TORCH = ("accelerate", "faster-whisper", "sentence-transformers")
"""Requirements of Open WebUI for documents and speech of its own: gigabytes that a chat does not need."""

DEER_FLOW = """
import asyncio, json, os, sys
from langchain_mcp_adapters.client import MultiServerMCPClient

async def main():
    tools = await MultiServerMCPClient(json.loads(sys.argv[1]), tool_name_prefix=True).get_tools()
    (ask,) = [tool for tool in tools if tool.name == "sleuth_ask"]
    print(await ask.ainvoke({"question": sys.argv[2]}))

asyncio.run(main())
"""
"""The calls by which deer-flow's `deerflow/mcp` loads a server that does not run on standard input and output."""


def block(page: str, heading: str, language: str) -> str:
    """Return the only code block of a language in a section of a page."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(code)


def environment_of(*packages: str, without: Sequence[str] = ()) -> Path:
    """Return the commands of an environment with these packages; skip the test if uv cannot install them."""
    folder = ROOT / ".cache" / "recipes" / packages[0].partition("=")[0]
    folder.parent.mkdir(parents=True, exist_ok=True)
    done, never, python = folder / "installed", folder / "never", str(folder / "bin" / "python")
    with FileLock(f"{folder}.lock"):
        if not done.is_file() or done.read_text() != str(packages):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            never.write_text("".join(f"{name} ; python_version < '3'\n" for name in without))
            uv = ["uv", "pip", "install", "--compile-bytecode", "--python", python, "--override", never, *packages]
            for command in (["pip", "install", "uv"], uv):
                ended = subprocess.run([python, "-m", *command], capture_output=True, text=True, check=False)
                if ended.returncode:
                    missing(f"{packages} cannot be installed: {ended.stderr[-500:]}")
            done.write_text(str(packages))
    return folder / "bin"


def python_of(recipe: str) -> Path:
    """Return the Python of an environment with the packages that a recipe of the page installs."""
    names = block(PAGE, recipe, "sh").removeprefix("pip install ").split()
    versions = dict(re.findall(r"([\w-]+) (\d+\.\d+\.\d+)", PAGE))
    return environment_of(*(f"{name}=={versions[name]}" if name in versions else name for name in names)) / "python"


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(WithAgent(script)) as running:
        yield running


@pytest.fixture
async def home(tmp_path: Path, proxy: Proxy) -> Path:
    """A home with documents; `sleuth` in this folder finds the model by its settings there."""
    await archive(tmp_path)
    (tmp_path / "sleuth.toml").write_text(f'model_url = "{proxy.url}"\nembedder = "none"\n')
    (command := tmp_path / "sleuth").write_text(f'#!/bin/sh\nPYTHONPATH={SOURCES} exec {shlex.join(SLEUTH)} "$@"\n')
    command.chmod(0o755)
    return tmp_path / "home"


def filled_in(code: str, home: Path, url: str = "") -> str:
    """Return code of a page with the places of this test."""
    code = code.replace("/path/to/.venv/bin/sleuth", str(home.parent / "sleuth"))
    return code.replace("/path/to/archive", str(home)).replace("http://HOST:8100", url)


async def run(python: Path, code: str, proxy: Proxy, folder: Path, *arguments: str) -> str:
    """Run a program whose model is the scripted one; return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLEUTH_", "OPENAI_", "PYTHON"))}
    openai = {"OPENAI_BASE_URL": proxy.url, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    process = await asyncio.create_subprocess_exec(
        python, "-c", code, *arguments, env=kept | openai, cwd=folder, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.nightly
async def test_claude_desktop(home: Path) -> None:
    configuration = block(PAGE, "Over standard input and output", "json")
    given = json.loads(filled_in(configuration, home))["mcpServers"]["sleuth"]
    async with Client(StdioServerParameters(**given, cwd=home.parent), read_timeout_seconds=120) as client:
        answer = (await client.call_tool("ask", {"question": QUESTION})).structured_content
    assert answer is not None and answer["text"] == "Edric Gannow"


@pytest.mark.nightly
async def test_deep_agent_with_a_method_as_sub_agent(home: Path, proxy: Proxy) -> None:
    here = [SOURCES, str(Path(pytest.__file__).parents[1])]  # for what sleuth needs, after the recipe's packages
    file = ROOT / "examples" / "integrations" / "deep_agent.py"
    code = f"import os, runpy, sys; sys.path += {here}; os.environ['SLEUTH_HOME'] = 'home'; runpy.run_path('{file}')"
    out = await run(python_of("deepagents"), code, proxy, home.parent, QUESTION)
    assert "I have looked it up: Edric Gannow [1]" in out


@pytest.mark.nightly
async def test_deep_agent_with_the_tools_of_mcp(home: Path, proxy: Proxy) -> None:
    code = filled_in(block(PAGE, "deepagents", "python"), home)
    out = await run(python_of("deepagents"), code, proxy, home.parent)
    assert "I have looked it up: " in out and "Edric Gannow" in out


@pytest.mark.nightly
async def test_deer_flow(home: Path, proxy: Proxy, oracle: Oracle) -> None:
    async with talking(home.parent, oracle, api_keys=f"local:{KEY}") as url:
        configuration = filled_in(block(PAGE, "deer-flow", "json"), home, url.removesuffix("/langgraph"))
        servers: dict[str, Any] = json.loads(configuration.replace("$SLEUTH_KEY", KEY))["mcpServers"]
        used = {
            name: {"transport": each["type"], "url": each["url"], "headers": each["headers"]}
            for name, each in servers.items()
            if each["enabled"]
        }
        out = await run(python_of("deepagents"), DEER_FLOW, proxy, home.parent, json.dumps(used), QUESTION)
    assert "Edric Gannow" in out


@pytest.mark.nightly
async def test_openai_agents(home: Path, proxy: Proxy, oracle: Oracle) -> None:
    async with talking(home.parent, oracle, api_keys=f"local:{KEY}") as url:
        code = filled_in(block(PAGE, "OpenAI Agents", "python"), home, url.removesuffix("/langgraph"))
        out = await run(python_of("OpenAI Agents"), code, proxy, home.parent)
    assert out.count("I have looked it up: ") == 2
    assert "Edric Gannow [1]" in out


@pytest.mark.faults  # not nightly: it installs 1.3 GB and takes minutes to start
async def test_open_webui(tmp_path: Path, oracle: Oracle) -> None:
    page = (HOW_TO / "http.md").read_text("utf-8")
    (version,) = re.findall(r"version (\d+\.\d+\.\d+) of Open WebUI", page)
    command = [
        environment_of(f"open-webui=={version}", without=NEEDS_TORCH) / "open-webui",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port := free_port()),
    ]
    here, log = f"http://127.0.0.1:{port}", tmp_path / "webui.log"
    async with talking(tmp_path, oracle, api_keys=f"local:{KEY}") as url:
        given = block(page, "Open WebUI", "sh").replace("http://HOST:8100", url.removesuffix("/langgraph"))
        environment = {
            **dict(re.findall(r"-e (\w+)=(\S+)", given)),
            **{"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DATA_DIR": str(tmp_path / "data")},
            **{"WEBUI_AUTH": "False", "ENABLE_OLLAMA_API": "False", "OFFLINE_MODE": "True"},
        }
        is_up = partial(answers, f"{here}/health")
        async with (
            running_beside(command, log, is_up=is_up, folder=tmp_path, environment=environment),
            httpx.AsyncClient(base_url=here, timeout=120) as client,
        ):
            signed_in = await client.post("/api/v1/auths/signin", json={"email": "", "password": ""})
            client.headers["Authorization"] = f"Bearer {signed_in.json()['token']}"
            models = (await client.get("/api/models")).json()["data"]
            assert METHODS.keys() <= {each["id"] for each in models}
            asked = {"model": "par-rag", "messages": [{"role": "user", "content": QUESTION}], "stream": False}
            reply = (await client.post("/api/chat/completions", json=asked)).json()
    assert reply["choices"][0]["message"]["content"].startswith("Edric Gannow [1]")
