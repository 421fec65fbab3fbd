"""agent-chat-ui in Chromium, against LangGraph's development server and `sleuth serve`.

SLEUTH_PICTURES=FOLDER also saves pictures.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from agent_chat_ui import agent_chat_ui, chat_page
from chat_scene import archive, knowing
from dev_server import langgraph_dev
from langgraph_scene import APPROVED, PLAIN, said
from langgraph_sdk import get_client
from page_use import picture
from playwright.async_api import Page, expect
from serve_process import sleuth_serve
from serve_scene import QUESTION

__all__ = ["agent_chat_ui"]

PAUSE = 0.25
"""Seconds before each word of a reply, so that a test sees the beginning of an answer."""

BEGINS = "[...document.querySelectorAll('p')].some((line) => line.textContent.trim() === 'Edric')"


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

    async def picture(self, tab: Page, name: str) -> None:
        await picture(tab, f"agent-chat-ui-{self.name.replace(' ', '-')}-{name}")


@asynccontextmanager
async def chatting(name: str, built: Path, folder: Path) -> AsyncIterator[Chat]:
    async with knowing(pause=PAUSE) as proxy:
        environment = {**await archive(folder), "SLEUTH_MODEL_URL": proxy.url}
        if name == "langgraph dev":
            with langgraph_dev(folder, **environment) as dev, chat_page(built, folder / "ui.log", api=dev.url) as page:
                yield Chat(name, dev.url, page)
            return
        async with sleuth_serve(folder, **environment) as served:
            api = f"{served.url}/langgraph"
            with chat_page(built, folder / "ui.log", api=api) as page:
                yield Chat(name, api, page)


async def send(tab: Page, text: str) -> None:
    await tab.get_by_placeholder("Type your message...").fill(text)
    await tab.get_by_role("button", name="Send").click()


@pytest.mark.nightly
@pytest.mark.parametrize("server", ["langgraph dev", "sleuth serve"])
async def test_agent_chat_ui_streams_cites_branches_and_approves(
    agent_chat_ui: Path, page: Page, tmp_path: Path, server: str
) -> None:
    async with chatting(server, agent_chat_ui, tmp_path) as chat:
        await chat.open(page, PLAIN)
        await send(page, QUESTION)
        await page.wait_for_function(BEGINS)
        await chat.picture(page, "streams")
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()
        await expect(page.get_by_text("[1] The Pellowrig Light: “built by Edric Gannow”")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await chat.picture(page, "cites")

        asked = page.get_by_text(QUESTION, exact=True)
        await asked.hover()
        await page.get_by_role("button", name="Edit").last.click()
        await page.get_by_role("textbox").first.fill("Hello!")
        await page.get_by_role("button", name="Submit").click()
        await expect(asked).to_have_count(0)
        await expect(page.get_by_text("Hello! What would you like to know?").last).to_be_visible()
        await page.get_by_text("Hello!", exact=True).last.hover()
        await expect(page.get_by_text("2 / 2").first).to_be_visible()
        await chat.picture(page, "branches")
        await page.get_by_text("2 / 2").first.locator("xpath=preceding-sibling::button").click()
        await expect(asked).to_be_visible()
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()

        await chat.open(page, APPROVED)
        await send(page, QUESTION)
        await expect(page.get_by_text("The steps to answer").first).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await chat.picture(page, "plan")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Edric Gannow [1]")).to_be_visible()
        await expect(page.get_by_text("The steps to answer")).to_have_count(0)
        await chat.picture(page, "approved")
