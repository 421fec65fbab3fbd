"""Going on in the page: a follow-up, another budget, a chat; and an upload that is stopped."""

import asyncio
import re

import httpx
import pytest
from blocking_model import CORPUS, Gated
from page_fixture import Site
from page_use import (
    FOLLOW_UP,
    QUESTION,
    QUOTE,
    Teller,
    ask_and_wait,
    choose_method,
    drop_documents,
    expect_status,
    faults,
    open_form,
    open_settings,
    open_tab,
    picture,
    send,
    source,
)
from playwright.async_api import Page, expect

pytestmark = pytest.mark.nightly


async def ask_on(page: Page, message: str = FOLLOW_UP) -> None:
    await page.get_by_role("textbox", name="Follow-up question").fill(message)
    await send(page)


async def expect_conversation(page: Page) -> None:
    """Assert that the page shows the follow-up with the earlier question and answer."""
    await expect(page.get_by_role("heading", name=FOLLOW_UP)).to_be_visible()
    await expect_status(page, "answered")
    await expect(page.locator(".turn .asked")).to_have_text([QUESTION, FOLLOW_UP])
    await expect(page.get_by_text(f"Understood as: {QUESTION}")).to_be_visible()
    answers = page.get_by_role("region", name="Answer")
    await expect(answers).to_contain_text(["Kelp Fair", "Kelp Fair"])
    await answers.first.get_by_role("button", name=re.compile("Footnote .*: Sennick Harbour")).click()
    await expect(source(page).locator("mark")).to_contain_text(QUOTE)
    await page.keyboard.press("Escape")


async def test_follow_up_starts_a_chat(page: Page, site: Site, axe: str) -> None:
    await ask_and_wait(page, await site())
    await ask_on(page)
    await expect_conversation(page)
    await picture(page, "conversation")
    assert await faults(page, axe) == []
    await page.reload()
    await expect_conversation(page)
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("listitem")
    await expect(listed).to_have_count(1)  # with the run that it follows up on
    await expect(listed).to_contain_text(QUESTION)
    await open_tab(page, "Explore")
    await expect(page.get_by_role("heading", name="State machine of par-rag")).to_be_visible()
    await page.get_by_role("link", name="Back to the answer").click()
    await expect_conversation(page)


async def test_run_out_of_budget_resumes_with_a_larger_one(page: Page, site: Site, axe: str) -> None:
    await drop_documents(page, await site())
    await open_form(page)
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    await choose_method(page, "par-rag")
    await open_settings(page)
    await page.get_by_label("maximum model calls").fill("3")
    await send(page)
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


async def test_chat_is_shown_and_continued(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, url := await site())
    chat = {"question": QUESTION, "method": "chat", "thread": "talk", "values": {"method": "par-rag"}}
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        assert (await client.post("/v1/runs", json=chat)).status_code == 201
    await page.goto(f"{url}/#/runs/talk")
    said = page.locator(".turn .asked")
    await expect(said).to_have_text([QUESTION])
    answers = page.get_by_role("region", name="Answer")
    await expect(answers).to_contain_text("Kelp Fair")
    teller.gates["planner/plan"].clear()
    await ask_on(page, "And once more?")
    await expect(said).to_have_text([QUESTION, "And once more?"])
    await expect(answers).to_have_count(1)  # the earlier one stays
    await expect(answers).to_contain_text("Kelp Fair")
    steps = page.get_by_role("region", name="Steps").get_by_role("listitem")
    await expect(steps).to_have_text([re.compile("Read the question"), re.compile("Planning the steps")])
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    teller.gates["planner/plan"].set()
    await expect(answers).to_have_count(2)
    await expect_status(page, "answered")


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
