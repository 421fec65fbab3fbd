"""agent-chat-ui, LangChain's chat page, served by Next.js.

SLEUTH_AGENT_CHAT_UI names its folder after `pnpm install --frozen-lockfile` and `next build`, which take some minutes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from process import answers, free_port, program, running


@pytest.fixture(scope="session")
def agent_chat_ui() -> Path:
    """Return the folder of the built page; skips unless SLEUTH_AGENT_CHAT_UI is set, also in CI: the build is long."""
    built = Path(os.environ.get("SLEUTH_AGENT_CHAT_UI", "nowhere"))
    if not (built / ".next" / "BUILD_ID").is_file():
        pytest.skip("SLEUTH_AGENT_CHAT_UI names no folder with a built agent-chat-ui")
    program("node is not installed: apt-get install nodejs", "node")
    return built


@contextmanager
def chat_page(built: Path, log: Path, *, api: str) -> Iterator[str]:
    """Serve the page, whose proxy at /api sends requests to `api`; yield its URL."""
    port = free_port()
    command = ["node", "node_modules/next/dist/bin/next", "start", "--port", str(port)]
    environment = os.environ | {"LANGGRAPH_API_URL": api, "LANGSMITH_API_KEY": "", "NEXT_TELEMETRY_DISABLED": "1"}
    url = f"http://localhost:{port}"
    with running(command, log, is_up=partial(answers, url), folder=built, environment=environment):
        yield url
