"""The examples of embedding, as processes of their own against a scripted model server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agent_scene import WithAgent, script
from recording_proxy import Proxy, proxying
from serve_scene import FILES, QUESTION

import sleuth
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[3] / "examples" / "embedding"


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(WithAgent(script)) as running:
        yield running


@pytest.fixture
async def environment(proxy: Proxy, tmp_path: Path) -> dict[str, str]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    home = tmp_path / "home"
    await ingest([tmp_path / name for name in FILES], settings=Settings(home=home, embedder="none"))
    return {"SLEUTH_HOME": str(home), "SLEUTH_MODEL_URL": proxy.url, "SLEUTH_EMBEDDER": "none"}


async def run(example: str, environment: dict[str, str], *arguments: str, said: str = "") -> str:
    """Run an example; return its output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error::DeprecationWarning:__main__", str(EXAMPLES / example), *arguments),
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(said.encode()), 180)
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.nightly
async def test_embedding_ask_example(environment: dict[str, str]) -> None:
    out = await run("ask.py", environment, QUESTION)
    assert out.splitlines()[0] == "Edric Gannow"
    assert "built by Edric Gannow" in out


@pytest.mark.nightly
async def test_embedding_tool_example(environment: dict[str, str], proxy: Proxy) -> None:
    out = await run("tool.py", environment, "Tell me about the light.")
    assert "I have looked it up: Edric Gannow [1]" in out
    assert "[1] The Pellowrig Light: “" in out
    assert len(proxy.calls) == 3, "plan, draft, answer; the agent's own calls carry no id"


async def test_embedding_node_example(environment: dict[str, str]) -> None:
    assert "It is Edric Gannow." in await run("node.py", environment, QUESTION)


@pytest.mark.nightly
async def test_embedding_subgraph_example(environment: dict[str, str]) -> None:
    out = await run("subgraph.py", environment, QUESTION)
    assert out.startswith("Edric Gannow [1]")


@pytest.mark.nightly
async def test_embedding_chat_example(environment: dict[str, str]) -> None:
    out = await run("chat.py", environment, said="Hello!\nWho built it?\nthe light\nAnd the light?\n")
    assert [line for line in out.splitlines() if line and not line.startswith("[1]")] == [
        "Hello! What would you like to know?",
        "Built what?",
        "Edric Gannow [1]",
        "Edric Gannow [1]",
    ]


async def test_once_runs_a_question_once_per_key(
    environment: dict[str, str], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with sleuth.open() as app:
        answers = [await app.once(key, QUESTION, method="plain-rag") for key in ("a", "a", "b")]
    assert answers[0] == answers[1]
    assert answers[0].thread != answers[2].thread
    assert len(proxy.calls) == 2
