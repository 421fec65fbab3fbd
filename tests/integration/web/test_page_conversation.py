"""Going on in the page: a follow-up, another budget, a chat; and an upload that is stopped."""

import asyncio

import httpx
import pytest
from blocking_model import CORPUS, Gated
from page_fixture import Site
from page_use import (
    FOLLOW_UP,
    QUESTION,
    ask_and_wait,
    choose_method,
    drop_documents,
    expect_status,
    faults,
    open_tab,
    picture,
)
from playwright.async_api import Page, expect


async def ask_on(page: Page, message: str = FOLLOW_UP) -> None:
    form = page.get_by_role("form", name="Ask a follow-up")
    await form.get_by_role("textbox").fill(message)
    await form.get_by_role("button", name="Ask a follow-up").click()


async def expect_conversation(page: Page) -> None:
    """Assert that the page shows the follow-up with the earlier question and answer."""
    await expect(page.get_by_role("heading", name=FOLLOW_UP)).to_be_visible()
    await expect_status(page, "answered")
    said = page.get_by_role("list", name="Earlier messages").get_by_role("listitem")
    await expect(said.first).to_have_text(f"You: {QUESTION}")
    await expect(said.nth(1)).to_contain_text("Kelp Fair [1]")
    await expect(said.nth(2)).to_have_text(f"You: {FOLLOW_UP}Rewritten as: {QUESTION}")
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")


@pytest.mark.nightly
async def test_follow_up_starts_a_chat(page: Page, site: Site, axe: str) -> None:
    await ask_and_wait(page, await site())
    await ask_on(page)
    await expect_conversation(page)
    await picture(page, "conversation")
    assert await faults(page, axe) == []
    await page.reload()
    await expect_conversation(page)
    await expect(page.get_by_role("form", name="Ask a follow-up")).to_contain_text("The next message of this chat.")
    await page.get_by_text("How this was found").click()
    await expect(page.get_by_role("region", name="Methods used").get_by_role("link", name="par-rag")).to_be_visible()
    await open_tab(page, "Explore")
    await expect(page.get_by_role("heading", name="Checkpoints")).to_be_visible()


@pytest.mark.nightly
async def test_run_out_of_budget_resumes_with_a_larger_one(page: Page, site: Site, axe: str) -> None:
    await drop_documents(page, await site())
    await page.get_by_role("link", name="Ask", exact=True).click()
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    await choose_method(page, "par-rag")
    await page.get_by_label("maximum model calls").fill("3")
    await page.get_by_role("button", name="Ask", exact=True).click()
    form = page.get_by_role("form", name="Larger budget")
    await expect(form).to_contain_text("3 calls")
    await expect(form.get_by_label("maximum model calls")).to_have_value("3")
    await expect(page.get_by_role("region", name="Answer")).not_to_contain_text("Kelp Fair")
    assert await faults(page, axe) == []
    await form.get_by_label("maximum model calls").fill("")
    await form.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    await expect_status(page, "answered")
    await expect(form).to_have_count(0)
    await open_tab(page, "Explore")
    await expect(page.get_by_role("region", name="Checkpoints")).to_contain_text("resumed from here")


@pytest.mark.nightly
async def test_chat_is_shown_and_continued(page: Page, site: Site) -> None:
    await drop_documents(page, url := await site())
    chat = {"question": QUESTION, "method": "chat", "thread": "talk", "values": {"method": "par-rag"}}
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        assert (await client.post("/v1/runs", json=chat)).status_code == 201
    await page.goto(f"{url}/#/runs/talk")
    said = page.get_by_role("list", name="Earlier messages").get_by_role("listitem")
    await expect(said).to_have_text([f"You: {QUESTION}"])
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    await ask_on(page, "And once more?")
    await expect(said).to_have_count(3)
    await expect(said.last).to_contain_text("And once more?")
    await expect_status(page, "answered")
    await page.get_by_text("How this was found").click()
    await page.get_by_role("region", name="Methods used").get_by_role("link", name="par-rag").click()
    await expect(page.get_by_text("Part of")).to_be_visible()


@pytest.mark.nightly
async def test_ingest_is_stopped(page: Page, site: Site) -> None:
    gated = Gated()
    await page.goto(f"{await site(embedder=gated)}/#/documents")
    [(name, text)] = CORPUS.items()
    corpus = {"name": name, "mimeType": "application/jsonl", "buffer": text.encode()}
    await page.locator("input[type=file]").first.set_input_files(corpus)
    await asyncio.to_thread(gated.reached.wait)
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("button", name="Stopping after this file")).to_be_disabled()
    gated.gate.set()
    await expect(page.get_by_text("Stopped. 1 file: 1 added (1 in part).")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("Stopped. 1 file: 1 added (1 in part).")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete T").first).to_be_visible()
