"""agent-chat-ui in Chromium, served by Next.js, against LangGraph's development server and `sleuth serve`.

SLEUTH_AGENT_CHAT_UI names its folder after `pnpm install --frozen-lockfile` and `next build`, which take some minutes.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from chat_scene import APPROVED, PLAIN, archive, knowing, said
from langgraph_sdk import get_client
from playwright.async_api import Page, expect
from process import answers, free_port, program, running
from serve_process import LANGGRAPH_SERVERS
from serve_scene import QUESTION

PAUSE = 0.25
"""Seconds before each word of a reply, so that a test sees the beginning of an answer."""

BEGINS = "[...document.querySelectorAll('p')].some((line) => line.textContent.trim() === 'Edric')"


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


@dataclass(frozen=True)
class Chat:
    """A server with the page before it."""

    name: str
    api: str
    page: str

    async def open(self, tab: Page, settings: dict[str, Any]) -> None:
        """Open a conversation with these settings of the chat, which the page itself cannot change."""
        client = get_client(url=self.api, api_key=None)
        query = {"apiUrl": f"{self.page}/api", "assistantId": "chat"}
        if self.name == "langgraph dev":
            assistant = await client.assistants.create("chat", context=settings)
            query |= {"apiUrl": self.api, "assistantId": assistant["assistant_id"]}
        else:  # its assistants are read-only: the first message of a thread sets them
            query["threadId"] = (await client.threads.create())["thread_id"]
            await client.runs.wait(query["threadId"], "chat", input=said("Hello!"), context=settings)
        await tab.goto(f"{self.page}/?{urlencode(query)}")


@asynccontextmanager
async def chatting(name: str, built: Path, folder: Path) -> AsyncIterator[Chat]:
    async with knowing(pause=PAUSE) as proxy:
        environment = {**await archive(folder), "SLEUTH_MODEL_URL": proxy.url}
        start, path = LANGGRAPH_SERVERS[name]
        async with start(folder, **environment) as served:
            api = f"{served.url}{path}"
            with chat_page(built, folder / "ui.log", api=api) as page:
                yield Chat(name, api, page)


async def send(tab: Page, text: str) -> None:
    await tab.get_by_placeholder("Type your message...").fill(text)
    await tab.get_by_role("button", name="Send").click()


@pytest.mark.nightly
@pytest.mark.parametrize("server", LANGGRAPH_SERVERS)
async def test_agent_chat_ui_streams_cites_branches_and_approves(
    agent_chat_ui: Path, page: Page, tmp_path: Path, server: str
) -> None:
    async with chatting(server, agent_chat_ui, tmp_path) as chat:
        await chat.open(page, PLAIN)
        await send(page, QUESTION)
        await page.wait_for_function(BEGINS)
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()
        await expect(page.get_by_text("[1] The Pellowrig Light: “built by Edric Gannow”")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_visible()

        asked = page.get_by_text(QUESTION, exact=True)
        await asked.hover()
        await page.get_by_role("button", name="Edit").last.click()
        await page.get_by_role("textbox").first.fill("Hello!")
        await page.get_by_role("button", name="Submit").click()
        await expect(asked).to_have_count(0)
        await expect(page.get_by_text("Hello! What would you like to know?").last).to_be_visible()
        await page.get_by_text("Hello!", exact=True).last.hover()
        await expect(page.get_by_text("2 / 2").first).to_be_visible()
        await page.get_by_text("2 / 2").first.locator("xpath=preceding-sibling::button").click()
        await expect(asked).to_be_visible()
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()

        await chat.open(page, APPROVED)
        await send(page, QUESTION)
        await expect(page.get_by_text("The steps to answer").first).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()
        await expect(page.get_by_text("The steps to answer")).to_have_count(0)
