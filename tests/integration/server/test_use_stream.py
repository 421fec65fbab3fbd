"""useStream in Node with a page of jsdom: @langchain/react's against LangGraph's development server, that of
@langchain/langgraph-sdk against `sleuth serve`.
"""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_scene import BACK, archive, knowing
from dev_server import langgraph_dev
from langgraph_scene import APPROVED, PLAIN, talking
from langgraph_sdk import get_sync_client
from serve_scene import QUESTION, Oracle

pytestmark = pytest.mark.integration

HERE = Path(__file__).parents[1] / "js"
TURNS = [
    {"submit": "Hello!", "messages": 2, "waits": False},
    {"submit": QUESTION, "messages": 4, "waits": False},
    {"submit": "Who built it?", "messages": 6, "waits": True},
    {"respond": "the light", "messages": 8, "waits": False},
]


@pytest.fixture(scope="module")
def node() -> str:
    """Return the path of Node, after installing the packages of package-lock.json."""
    found = shutil.which("node")
    if found is None:
        assert os.environ.get("SLEUTH_REQUIRE_ALL") != "1", "Node.js is not installed"
        pytest.skip("Node.js is not installed")
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (HERE / "package-lock.json").stat().st_mtime:
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return found


async def test_use_stream_hook_continues_a_conversation(node: str, tmp_path: Path) -> None:
    async with knowing() as proxy:
        environment = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        told = await asyncio.to_thread(converse, node, tmp_path, environment)
    assert [each["error"] for each in told] == [None] * len(TURNS)
    assert len({each["thread"] for each in told}) == 1
    assert told[0]["messages"] == [["human", "Hello!"], ["ai", "Hello to you."]]
    kind, text = told[1]["messages"][-1]
    assert kind == "ai"
    assert text.startswith("Edric Gannow [1]\n\n[1] The Pellowrig Light: “")
    assert told[1]["citations"] == ["built by Edric Gannow"]
    assert told[2]["interrupt"] == BACK
    assert [text for _, text in told[3]["messages"][4:7]] == ["Who built it?", "Built what?", "the light"]
    assert told[3]["messages"][-1][1].startswith("Edric Gannow [1]")
    assert told[3]["page"] == "\n".join(text for _, text in told[3]["messages"])


def converse(node: str, folder: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the messages of the hook after each turn; the assistant configures the method."""
    with langgraph_dev(folder, **environment) as server:
        assistant = get_sync_client(url=server.url).assistants.create("chat", context={"method": "plain-rag"})
        return run(node, "use_stream.mjs", [server.url, assistant["assistant_id"]], TURNS)


async def test_use_stream_hook_streams_interrupts_and_edits(node: str, tmp_path: Path, oracle: Oracle) -> None:
    oracle.speaks = True
    approve = {"decisions": [{"type": "approve"}]}
    turns = [
        {"submit": "Hello!", "context": PLAIN},
        {"submit": QUESTION, "context": PLAIN},
        {"submit": "Who built it?", "context": PLAIN},
        {"respond": "the light"},
        {"submit": QUESTION, "context": APPROVED},
        {"respond": approve},
        {"edit": "And who built the light?", "at": 2, "context": PLAIN},
    ]
    async with talking(tmp_path, oracle) as url:
        told = await asyncio.to_thread(run, node, "use_stream_runs.mjs", [url], turns)
    hello, answered, asked_back, replied, planned, approved, edited = told
    assert [each["error"] for each in told] == [None] * len(turns)
    assert len({each["thread"] for each in told}) == 1
    assert hello["messages"] == [["human", "Hello!"], ["ai", "Hello to you."]]
    assert any("Edric Gannow".startswith(text) for text in answered["partial"]), "the answer is streamed"
    assert answered["messages"][-1][1].startswith("Edric Gannow [1]\n\n[1] The Pellowrig Light: “")
    assert answered["citations"] == ["built by Edric Gannow"]
    assert asked_back["interrupt"] == BACK
    assert [text for _, text in replied["messages"][4:7]] == ["Who built it?", "Built what?", "the light"]
    assert replied["interrupt"] is None
    assert planned["interrupt"]["actionRequests"][0]["args"]["steps"][0]["question"] == QUESTION
    assert planned["messages"][-1][0] == "ai"
    assert [text.split(" [1]")[0] for _, text in approved["messages"][-2:]] == [QUESTION, "Edric Gannow"]
    assert [text.split(" [1]")[0] for _, text in edited["messages"]] == [
        "Hello!",
        "Hello to you.",
        "And who built the light?",
        "Edric Gannow",
    ]
    assert edited["branches"][2] == 2


def run(node: str, script: str, arguments: list[str], turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run a script of the hook; return what it prints after each turn."""
    done = subprocess.run(
        [node, script, *arguments],
        cwd=HERE,
        input="".join(f"{json.dumps(turn)}\n" for turn in turns),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]
