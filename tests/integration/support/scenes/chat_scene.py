"""A small archive that is read by words, a model that chats about it, and LangGraph's clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from asgi_server import serving, started
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from scripted_backend import CHAT, Asked, Proxy, Scripted, completion, prompt_of, proxying
from serve_scene import FILES, QUESTION, READING, Oracle, opening
from starlette.responses import JSONResponse, Response

from sleuth.agents.model import Request
from sleuth.studio.server.app import create_app
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

BACK = {"question": "Built what?", "options": ["the light", "the dam"]}
KINDS = {
    "Hello!": "small talk",
    QUESTION: "question",
    "Who built it?": "ambiguous",
    "And who built the light?": "follow-up",
    "And the light?": "follow-up",
}
GREETING = "Hello! What would you like to know?"
SAID: dict[str, Any] = {
    "reader/read": READING,
    "planner/plan": [{"question": QUESTION}],
    "drafter/draft": {"answer": "Edric Gannow", "citations": READING["citations"]},
    "reviewer/review": {"status": "PASS"},
    "answerer/answer": {"known": True, "answer": "Edric Gannow"},
    "rewriter/rewrite": {"question": QUESTION},
    "host/reply": {"needs_search": False, "reply": "hello"},
    "host/ask_back": BACK,
    "evaluator/support": "Yes",
}


def script(asked: Asked) -> Any:
    """Reply for each role; the router of a chat replies by the message."""
    return KINDS[asked.after("Latest message: ")] if asked.prompt == "router/route" else SAID[asked.prompt]


async def archive(folder: Path, home: Path | None = None, files: Mapping[str, str] = FILES) -> dict[str, str]:
    """Reads the documents in; returns the settings of their store, which is in the folder by default."""
    for name, text in files.items():
        await asyncio.to_thread((folder / name).write_text, text)
    home = home or folder / "home"
    await ingest([folder / name for name in files], settings=Settings(home=home, embedder="none"))
    return {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none"}


@asynccontextmanager
async def knowing(backend: Scripted | None = None, *, pause: float | None = None) -> AsyncIterator[Proxy]:
    """The model server; with `pause` it streams its words."""
    async with proxying(backend or Scripted(script), pause=pause) as proxy:
        yield proxy


class WithAgent(Scripted):
    """Scripted model that is also an agent: it calls a tool and repeats the result.

    The tool is `ask`, that of a sub-agent, or the first one. Without tools, it finds the builder in what it reads.
    Embeddings count words.
    """

    embedded: int = 0

    async def say(self, method: str, path: str, body: bytes) -> Response:
        if path == "/v1/embeddings":
            return self._embed(json.loads(body)["input"])
        if path == "/v1/responses":
            return _respond(json.loads(body))
        asked = json.loads(body) if path == CHAT else {}
        if not asked or prompt_of(asked) or asked["model"] == "scripted":
            return await super().say(method, path, body)
        last = asked["messages"][-1]
        if last["role"] == "tool":
            return completion(f"I have looked it up: {last['content']}")
        if "tools" not in asked:
            return completion("Edric Gannow" if "Edric Gannow" in last["content"] else "Unknown.")
        called = _call_of([tool["function"] for tool in asked["tools"]])
        reply = json.loads(bytes(completion("").body))
        message = reply["choices"][0]["message"]
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": called}]
        return JSONResponse(reply)

    def _embed(self, texts: list[str]) -> Response:
        self.embedded += len(texts)
        words = ("light", "gannow", "born", "fair")
        rows = [[0.1 + text.lower().count(word) for word in words] for text in texts]
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data, "model": "words", "usage": usage})


def _call_of(tools: list[dict[str, Any]]) -> dict[str, str]:
    """Return the agent's call, with the question as the first argument that the tool requires."""
    named = {tool["name"]: tool for tool in tools}
    name = next((name for name in ("ask", "task") if name in named), tools[0]["name"])
    more = {"subagent_type": "documents"} if name == "task" else {}
    required = named[name]["parameters"]["required"][0]
    return {"name": name, "arguments": json.dumps({required: QUESTION, **more})}


def _respond(asked: dict[str, Any]) -> Response:
    """Return the agent's reply in the form of OpenAI's Responses API."""
    last = asked["input"][-1] if isinstance(asked["input"], list) else {}
    if last.get("type") == "function_call_output":
        text = {"type": "output_text", "text": f"I have looked it up: {last['output']}", "annotations": []}
        item = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
    else:
        item = {"type": "function_call", "call_id": "call-1", "status": "completed", **_call_of(asked["tools"])}
    head = {"id": uuid4().hex, "object": "response", "created_at": 0, "model": "agent", "status": "completed"}
    return JSONResponse({**head, "output": [{"id": uuid4().hex, **item}], "tools": [], "tool_choice": "auto"})


PLAIN = {"method": "plain-rag"}
APPROVED = {"method": "par-rag", "approve_plan": True}


def reply_of(request: Request) -> Any:
    return script(Asked(request.prompt, request.messages[-1]["content"], repair=False, turn=0))


@asynccontextmanager
async def talking(folder: Path, oracle: Oracle, **settings: Any) -> AsyncIterator[str]:
    """Serve the documents of `chat_scene`; yield the URL for LangGraph's clients."""
    oracle.said = reply_of
    home = Path((await archive(folder))["SLEUTH_HOME"])
    app = create_app(Settings(home=home, embedder="none", **settings), open_model=opening(oracle))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(started(app))
        yield f"{await stack.enter_async_context(serving(app))}/langgraph"


def client_at(url: str, key: str | None = None) -> LangGraphClient:
    """Return the SDK's client, without keys of the environment."""
    return get_client(url=url, api_key=key)


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def texts(state: Any) -> list[str]:
    """Return the texts of the messages, without footnotes."""
    return [message["content"].split(" [1]")[0] for message in state["messages"]]
