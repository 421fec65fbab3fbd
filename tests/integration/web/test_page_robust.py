"""Trouble around the page: long words, lost connections, dead links and long texts; and drafts, plans, feedback."""

import asyncio
import re

import pytest
from asgi_server import serving
from page_fixture import MODELS, Site
from page_use import (
    QUESTION,
    Teller,
    ask_and_wait,
    drop_documents,
    expect_status,
    faults,
    open_form,
    open_methods,
    open_tab,
    picture,
    send,
)
from playwright.async_api import Page, Route, expect

pytestmark = pytest.mark.nightly

INTERNAL = r"wave|halted|\b[0-9a-f]{12,}\b|retrieve_coarse|thread"
"""Words of the code, which a reader does not know."""


async def test_answer_shows_sources_in_context_and_no_internals(page: Page, site: Site) -> None:
    await ask_and_wait(page, await site())
    sources = page.get_by_role("complementary", name="Sources")
    card = sources.get_by_role("article", name="Source 3")
    await expect(card).to_contain_text("Sennick Harbour")
    await expect(card.locator("mark")).to_contain_text("the Kelp Fair")
    await expect(card).to_contain_text("Fishing for crab")  # the sentence after the quote
    text = await page.locator("main").inner_text()
    assert not re.search(INTERNAL, text), text
    box = await page.get_by_role("textbox", name="Follow-up question").bounding_box()
    assert box
    assert box["y"] < 740, "the form for a follow-up is below the fold"
    await open_tab(page, "How this was found")
    findings = page.get_by_role("list", name="Findings").get_by_role("listitem")
    await expect(findings.first).to_contain_text("Looked for “Who built the Pellowrig Light?” – found Bastian Oake")
    await findings.first.get_by_role("button", name="Footnote 1").click()
    await expect(page.get_by_role("dialog").locator("mark")).to_be_visible()
    await page.keyboard.press("Escape")
    text = await page.locator("main").inner_text()
    assert not re.search(INTERNAL, text), text


async def test_lost_server_shows_a_banner_until_it_is_back(page: Page, site: Site) -> None:
    await drop_documents(page, await site())
    await page.route("**/v1/**", lambda route: route.abort())
    await page.route("**/healthz", lambda route: route.abort())
    await page.get_by_role("link", name="All runs", exact=True).click()
    await expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    await page.get_by_role("button", name="Try now").click()
    await expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    await page.unroute_all()  # the page tries again by itself
    await expect(page.get_by_text("The server cannot be reached.")).to_have_count(0)
    await expect(page.get_by_role("main").get_by_text("No runs yet.")).to_be_visible()


@pytest.mark.parametrize("address", ["#/nowhere", "#/runs/a/b", "#/%E0%A4%A"])
async def test_address_that_leads_nowhere_has_a_page(page: Page, site: Site, address: str) -> None:
    await page.goto(f"{await site()}/{address}")
    await expect(page.get_by_role("heading", name="This page does not exist")).to_be_visible()


async def test_deleted_run_has_a_page_with_ways_out(page: Page, site: Site, axe: str) -> None:
    await page.goto(f"{await site()}/#/runs/gone")
    await expect(page.get_by_role("heading", name="This run does not exist")).to_be_visible()
    assert await faults(page, axe) == []
    await page.get_by_role("link", name="Ask a question").click()
    await expect(page.get_by_role("textbox", name="Question", exact=True)).to_be_focused()


async def test_draft_survives_navigation_and_a_long_one_is_refused(page: Page, site: Site) -> None:
    await drop_documents(page, await site())
    await open_form(page)
    question = page.get_by_role("textbox", name="Question", exact=True)
    await expect(question).to_be_focused()
    await question.fill("Half a question")
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.reload()
    await open_form(page)
    await expect(question).to_have_value("Half a question")
    await question.fill("")
    examples = page.get_by_role("list", name="Examples").get_by_role("listitem")
    titles = ("Bastian Oake", "Pellowrig Light", "Sennick Harbour")
    await expect(examples).to_have_text([f"What is known about {title}?" for title in titles])
    await picture(page, "first")
    await question.fill("long " * 5_000)
    await expect(page.get_by_text("The question has 24,999 characters; the most is 20,000.")).to_be_visible()
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()


async def test_question_is_sent_before_the_methods_are_loaded(page: Page, site: Site) -> None:
    url = await site()
    await drop_documents(page, url)
    is_sent = asyncio.Event()

    async def load_later(route: Route) -> None:
        await is_sent.wait()
        await route.continue_()

    await page.route("**/v1/methods", load_later)
    await page.goto(url)
    await page.reload()
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    async with page.expect_request("**/v1/runs"):
        await page.keyboard.press("Enter")
    is_sent.set()
    await expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()


async def test_plan_is_changed_before_it_is_carried_out(page: Page, site: Site, teller: Teller, axe: str) -> None:
    await drop_documents(page, await site())
    teller.mistaken = True
    await open_form(page)
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    await page.get_by_role("button", name="Plan first").click()
    await send(page)
    plan = page.get_by_role("form", name="Plan")
    await expect_status(page, "waiting")
    await expect(plan.get_by_label("Step 2")).to_have_value("Which medal was named after #1?")
    assert await faults(page, axe) == []
    await plan.get_by_role("button", name="Add a step").click()
    await plan.get_by_label("Step 3").fill("Which fair is held in the birthplace of #1?")
    await plan.get_by_role("button", name="Move 3 up").click()
    await expect(plan.get_by_label("Step 2")).to_have_value("Which fair is held in the birthplace of #1?")
    await plan.get_by_role("button", name="Remove 1").click()
    await expect(plan.get_by_text("The step that #? stood for is removed.").first).to_be_visible()
    await expect(plan.get_by_role("button", name="Carry out the plan")).to_be_disabled()
    await plan.get_by_role("button", name="Remove 2").click()
    await plan.get_by_label("Step 1").fill("Which fair is held in Sennick Harbour?")
    await plan.get_by_role("button", name="Carry out the plan").click()
    await expect_status(page, "answered")
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")


async def test_outline_of_a_report_is_changed_and_the_report_is_saved(page: Page, site: Site, axe: str) -> None:
    await drop_documents(page, await site())
    await open_form(page)
    await page.get_by_role("textbox", name="Question", exact=True).fill("What is known about the fair?")
    await open_methods(page)
    await page.locator(".method", has=page.get_by_text("report", exact=True)).get_by_role("radio").check()
    await page.get_by_role("button", name="Plan first").click()
    await send(page)
    await expect_status(page, "waiting")
    plan = page.get_by_role("form", name="Plan")
    assert await faults(page, axe) == []
    await plan.get_by_role("button", name="Add a question").click()
    await plan.get_by_label("Step 2").fill("Which fair is held in Sennick Harbour?")
    await plan.get_by_role("button", name="Go on").click()
    await expect_status(page, "answered")
    answer = page.get_by_role("region", name="Answer")
    await expect(answer.get_by_role("heading")).to_have_text(
        ["The fair", "The light", "Which fair is held in Sennick Harbour"]
    )
    assert await answer.get_by_role("button", name=re.compile("Footnote")).count() == 2  # one for each section
    async with page.expect_download() as saving:
        await answer.get_by_role("button", name="Word").click()
    assert (await saving.value).suggested_filename.endswith(".docx")
    assert await faults(page, axe) == []


async def test_feedback_is_stored_and_question_is_retried(page: Page, site: Site) -> None:
    await ask_and_wait(page, await site())
    await page.get_by_role("button", name="Bad answer").click()
    await page.get_by_label("Comment").fill("Too short")
    await page.get_by_role("button", name="Save the comment").click()
    await expect(page.get_by_text("Saved. Thank you.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="Bad answer")).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_label("Comment")).to_have_value("Too short")
    first = page.url
    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page).not_to_have_url(first)
    await expect_status(page, "answered")
    await open_tab(page, "Compare")
    await expect(page.get_by_role("region", name="First branch")).to_contain_text("this run, par-rag")
    await open_tab(page, "Answer")
    again = page.url
    await page.get_by_role("button", name="Other method").click()
    await page.get_by_role("button", name="plain-rag").click()
    await expect(page).not_to_have_url(again)
    await page.reload()
    await expect_status(page, "answered")
    await open_form(page)
    await open_methods(page)
    await expect(page.locator(".method", has_text="plain-rag")).to_contain_text(re.compile(r"\d s in your runs"))


async def test_lost_model_server_is_shown_within_ten_seconds(page: Page, site: Site) -> None:
    async with serving(MODELS) as models:
        await page.goto(await site(model_url=f"{models}/v1"))
        await expect(page.get_by_role("button", name="Method: auto")).to_be_visible()
        await expect(page.locator(".banner")).to_have_count(0)
    await expect(page.get_by_text("The model server is not available")).to_be_visible(timeout=10_000)


async def test_page_of_another_build_is_reloaded(page: Page, site: Site) -> None:
    await page.goto(await site())
    await page.evaluate("window.isOld = true")
    await page.route("**/assets/documents-*.js", lambda route: route.fulfill(status=404), times=1)
    await page.get_by_role("link", name="Documents", exact=True).click()
    await expect(page.get_by_text("No documents yet.")).to_be_visible()
    assert not await page.evaluate("window.isOld === true")
