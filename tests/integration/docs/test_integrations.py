"""The programs in `examples` that embed sleuth, run as they are."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chat_scene import BACK, GREETING, WithAgent, archive, script, talking
from chromadb.config import Settings
from node_fixture import run_script
from otlp_collector import collecting
from scripted_backend import Proxy, proxying
from serve_scene import FILES, QUESTION, Oracle

import sleuth

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
PROGRAMS = EXAMPLES / "integrations"
PAGE = (ROOT / "docs" / "reference" / "integrations.md").read_text(encoding="utf-8")


def test_page_has_every_program_once() -> None:
    table = re.findall(r"^\| \[.+\]\(#.+\) \| .+ \| `(.+)` \|$", PAGE, re.MULTILINE)
    assert sorted(table) == sorted(each.name for each in PROGRAMS.iterdir() if each.is_file())
    assert re.findall(r'^--8<-- "examples/integrations/(.+)"$', PAGE, re.MULTILINE) == table


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(WithAgent(script)) as running:
        yield running


@pytest.fixture
async def environment(proxy: Proxy, tmp_path: Path) -> dict[str, str]:
    """The environment of a program: the model server of sleuth and OpenAI's are the scripted one."""
    (notes := tmp_path / "notes").mkdir()
    openai = {"OPENAI_BASE_URL": proxy.url, "OPENAI_API_KEY": "none", "AGENT_MODEL": "agent"}
    return {**await archive(notes, tmp_path / "home"), "SLEUTH_MODEL_URL": proxy.url, **openai}


async def run(file: str, environment: dict[str, str], *arguments: str, said: str = "", folder: Path = PROGRAMS) -> str:
    """Run a program; return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLEUTH_", "OTEL_", "OPENAI_"))}
    strict = () if folder == PROGRAMS else ("-W", "error::DeprecationWarning:__main__")  # LangChain's community warns
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *strict, str(folder / file), *arguments),
        env=kept | environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(said.encode()), 300)
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.nightly
async def test_chat_model(environment: dict[str, str], proxy: Proxy) -> None:
    out = await run("chat_model.py", environment | {"SLEUTH_MODEL_URL": "http://127.0.0.1:9"}, QUESTION)
    assert out == "Edric Gannow\n"
    assert proxy.calls == [], "sleuth's own client has sent nothing"


@pytest.mark.nightly
async def test_embeddings(environment: dict[str, str], proxy: Proxy, tmp_path: Path) -> None:
    environment |= {"SLEUTH_HOME": str(tmp_path / "other")}
    out = await run("embeddings.py", environment, str(tmp_path / "notes"), QUESTION)
    assert out == "Edric Gannow\n"
    assert isinstance(proxy.backend, WithAgent) and proxy.backend.embedded > len(FILES), "documents and the question"


@pytest.mark.nightly
@pytest.mark.parametrize("file", ["retriever.py", "vector_store.py"])
async def test_search_of_others(file: str, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("\n\n".join(FILES.values()))
    environment |= {"SLEUTH_HOME": str(tmp_path / "empty")}
    assert await run(file, environment, str(tmp_path / "all.txt"), QUESTION) == "Edric Gannow\n"


def fill_chroma(folder: Path) -> None:
    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    papers = client.create_collection("papers", embedding_function=None)
    metadatas: list[Any] = [{"source": "light.md", "author": "Ada"}, None, None]
    texts = ["Edric Gannow was born in Brindlecote.", "", "The mill ran."]
    papers.add(ids=["a", "b", "c"], embeddings=[[1.0, 0.0]] * 3, documents=texts, metadatas=metadatas)
    client.close()


async def test_chroma_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(fill_chroma, tmp_path / "chroma")
    environment = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none"}
    monkeypatch.chdir(tmp_path)
    out = await run("chroma_import.py", environment, str(tmp_path / "chroma"), "papers")
    assert "added=2" in out and "failed=1" in out
    home = sleuth.Settings(home=tmp_path / "home", embedder="none")
    (hit,) = await sleuth.search("Where was Edric born?", where="author=ada", settings=home)
    assert (hit.passage.id, hit.passage.title) == ("a", "light.md")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "argument", "shown"),
    [
        ("as_retriever.py", QUESTION, "Edric Gannow\n"),
        ("tool.py", QUESTION, "Edric Gannow [1]\n\n[1] The Pellowrig Light: “"),
        ("subgraph.py", "the Pellowrig Light", "Edric Gannow [1]"),
        ("messages_state.py", QUESTION, "Edric Gannow [1]"),
        ("create_agent.py", QUESTION, "I have looked it up: Edric Gannow [1]"),
    ],
)
async def test_part_of_sleuth_in_langchain(file: str, argument: str, shown: str, environment: dict[str, str]) -> None:
    assert (await run(file, environment, argument)).startswith(shown)


async def test_langgraph_sdk(environment: dict[str, str], oracle: Oracle, tmp_path: Path) -> None:
    async with talking(tmp_path, oracle) as url:
        out = await run("sdk_client.py", environment, url, QUESTION)
    assert out.startswith("Edric Gannow [1]")


@pytest.mark.nightly
async def test_use_stream(node: str, tmp_path: Path, oracle: Oracle) -> None:
    oracle.speaks = True
    async with talking(tmp_path, oracle) as url:
        arguments = [str(PROGRAMS / "use_stream.tsx"), url, QUESTION]
        (page,) = await asyncio.to_thread(run_script, node, "use_stream_example.mjs", arguments)
    assert page["messages"][0] == QUESTION
    assert page["messages"][1].startswith("Edric Gannow [1]")
    assert len(page["partial"]) > 1, "the answer is streamed"


@pytest.mark.nightly
async def test_opentelemetry(environment: dict[str, str]) -> None:
    async with collecting() as collector:
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        assert await run("otel_spans.py", environment, QUESTION) == "Edric Gannow\n"
    assert collector.named("run auto").parent == ""
    assert {"chat scripted", "retrieval"} <= {span.name for span in collector.spans}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "argument", "said", "shown"),
    [
        ("ask.py", QUESTION, "", ["Edric Gannow\n", "built by Edric Gannow"]),
        ("tool.py", "About the light.", "", ["[1] The Pellowrig Light: “", "I have looked it up: Edric Gannow [1]"]),
        ("node.py", QUESTION, "", ["It is Edric Gannow."]),
        ("subgraph.py", QUESTION, "", ["Edric Gannow [1]"]),
        ("chat.py", "", "Hello!\nWho built it?\nthe light\n", [GREETING, BACK["question"], "Edric Gannow [1]"]),
    ],
)
async def test_embedding(file: str, argument: str, said: str, shown: list[str], environment: dict[str, str]) -> None:
    arguments = [argument] if argument else []
    out = await run(file, environment, *arguments, said=said, folder=EXAMPLES / "embedding")
    places = [out.find(text) for text in shown]
    assert -1 not in places and places == sorted(places), out


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
