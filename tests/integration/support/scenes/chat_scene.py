"""A development server whose methods read a small archive by words, with a model that knows what is in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from recording_proxy import Proxy, proxying
from scripted_backend import Asked, Scripted
from serve_scene import FILES, QUESTION

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

QUOTED = [{"source": 1, "quote": "built by Edric Gannow"}]
BACK = {"question": "Built what?", "options": ["the light", "the dam"]}
KINDS = {
    "Hello!": "small talk",
    QUESTION: "question",
    "Who built it?": "ambiguous",
    "And who built the light?": "follow-up",
}
GREETING = "Hello! What would you like to know?"
SAID: dict[str, Any] = {
    "reader/read": {"answerable": True, "answer": "Edric Gannow", "citations": QUOTED},
    "planner/plan": [{"question": QUESTION}],
    "drafter/draft": {"answer": "Edric Gannow", "citations": QUOTED},
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


async def archive(folder: Path) -> dict[str, str]:
    """Reads the documents in; returns the settings of their store."""
    for name, text in FILES.items():
        await asyncio.to_thread((folder / name).write_text, text)
    home = folder / "home"
    await ingest([folder / name for name in FILES], settings=Settings(home=home, embedder="none"))
    return {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none"}


@asynccontextmanager
async def knowing(backend: Scripted | None = None, *, pause: float | None = None) -> AsyncIterator[Proxy]:
    """The model server; with `pause` it streams its words."""
    async with proxying(backend or Scripted(script), pause=pause) as proxy:
        yield proxy
