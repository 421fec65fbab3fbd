"""The usual tasks on the page, in few clicks; the conversations in the sidebar; the model and the colors."""

import pytest
from asgi_server import serving
from page_fixture import Site
from page_use import QUESTION, ask_and_wait, drop_documents, expect_status, faults, open_form, send, source
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

pytestmark = pytest.mark.nightly

COUNT = "window.clicks = 0; addEventListener('click', event => { if (event.isTrusted) window.clicks += 1; }, true);"


async def clicks(page: Page) -> int:
    """Return the number of clicks since the last call."""
    made: int = await page.evaluate("() => { const made = window.clicks; window.clicks = 0; return made; }")
    return made


async def test_usual_tasks_take_few_clicks(page: Page, site: Site) -> None:
    await page.add_init_script(COUNT)
    await ask_and_wait(page, await site())
    first = page.url
    await clicks(page)

    await page.get_by_role("button", name="Footnote 1").click()
    await expect(source(page).locator("mark")).to_be_visible()
    assert await clicks(page) == 1, "a source"
    await page.keyboard.press("Escape")

    await page.get_by_role("button", name="Other method").click()
    await page.get_by_role("button", name="plain-rag").click()
    await expect(page).not_to_have_url(first)
    await expect_status(page, "answered")
    assert await clicks(page) == 2, "another method"

    await page.get_by_role("link", name="Details").click()
    await page.get_by_role("link", name="Compare").click()
    await expect(page.get_by_role("region", name="Second branch")).to_contain_text("Kelp Fair")
    assert await clicks(page) == 2, "a comparison"

    await page.evaluate("url => { location.href = url; }", first)
    await page.get_by_role("link", name="Details").click()
    await page.get_by_role("link", name="Change the plan").click()
    await page.get_by_role("button", name="Fork and run").click()
    await expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text("Kelp Fair")
    assert await clicks(page) == 3, "a fork"

    await page.evaluate("location.hash = ''")
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    await page.get_by_role("button", name="Plan first").click()
    await send(page)
    await page.get_by_role("form", name="Plan").get_by_label("Step 1").fill("Which fair is held in Sennick Harbour?")
    await page.get_by_role("button", name="Carry out the plan").click()
    await expect_status(page, "answered")
    assert await clicks(page) == 3, "an edited plan"

    listed = page.get_by_role("navigation", name="Conversations").get_by_role("listitem")
    before = await listed.count()
    await listed.first.hover()
    await listed.first.get_by_role("button", name="Delete").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    await expect(listed).to_have_count(before - 1)
    assert await clicks(page) == 2, "a deletion"


async def test_conversation_is_renamed_by_keyboard(page: Page, site: Site, axe: str) -> None:
    await ask_and_wait(page, await site())
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("listitem")
    await listed.get_by_role("button", name="Rename").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="New name")).to_be_focused()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("The fair")
    await page.keyboard.press("Enter")
    await expect(listed.get_by_role("link")).to_contain_text("The fair")
    await page.reload()
    await expect(listed.get_by_role("link")).to_contain_text("The fair")
    await expect(page).to_have_title("The fair – sleuth")
    assert await faults(page, axe) == []


async def test_model_and_colors_are_chosen_in_a_menu(page: Page, site: Site) -> None:
    models = Starlette(routes=[Route("/v1/models", lambda _request: JSONResponse({"data": [{"id": "larger"}]}))])
    async with serving(models) as url:
        await drop_documents(page, await site(model_url=f"{url}/v1"))
        await open_form(page)
        await page.get_by_role("button", name="Settings").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("radio", name="Dark").check()
        await page.get_by_role("radio", name="larger").check()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("radio", name="Dark")).to_be_hidden()
        await page.reload()
        assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        async with page.expect_request("**/v1/runs") as sent:
            await page.get_by_role("button", name="What is known about Bastian Oake?").click()
        assert (await sent.value).post_data_json["model"] == "larger"
        await expect(page.get_by_role("heading", name="What is known about Bastian Oake?")).to_be_visible()
