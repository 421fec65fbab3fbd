"""@langchain/react's useStream, in Node with a page of jsdom, against the chat in LangGraph's development server."""

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
from langgraph_sdk import get_sync_client
from serve_scene import QUESTION

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
        done = subprocess.run(
            [node, "use_stream.mjs", server.url, assistant["assistant_id"]],
            cwd=HERE,
            input="".join(f"{json.dumps(turn)}\n" for turn in TURNS),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]
