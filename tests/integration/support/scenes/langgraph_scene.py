"""The application on a socket, with a model that chats about a small archive, for LangGraph's clients."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from asgi_server import serving, started
from chat_scene import KINDS, SAID, archive
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from serve_scene import Oracle, opening

from sleuth.agents.model import Request
from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

PLAIN = {"method": "plain-rag"}
APPROVED = {"method": "par-rag", "approve_plan": True}


def reply_of(request: Request) -> Any:
    """Reply for each role; the router of a chat replies by the message."""
    if request.prompt != "router/route":
        return SAID[request.prompt]
    latest = next(line for line in request.messages[-1]["content"].splitlines() if line.startswith("Latest message: "))
    return KINDS[latest.removeprefix("Latest message: ")]


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
