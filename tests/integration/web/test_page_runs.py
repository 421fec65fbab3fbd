"""The list of runs in a browser: found, filtered, compared, exported and deleted; conversations are together."""

import asyncio
import csv
import io
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from page_fixture import Site
from page_use import FOLLOW_UP, QUESTION, drop_documents, faults, picture
from playwright.async_api import Page, expect

pytestmark = pytest.mark.nightly

ROWS = ".run-table tbody tr"


async def finish(url: str, **form: Any) -> str:
    """Start a run and wait for its end; return its thread."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:
        begun = await client.post("/v1/runs", json={"question": QUESTION, **form})
        assert begun.status_code == 201, begun.text
        thread = str(begun.json()["thread"])
        await client.get(f"/v1/runs/{thread}/events")
    return thread


async def saved(page: Page, item: str) -> str:
    """Choose an item of the menu `Export` and return the saved file."""
    await page.get_by_role("button", name="Export").click()
    async with page.expect_download() as download:
        await page.get_by_role("button", name=item).click()
    file = Path(await (await download.value).path())
    return await asyncio.to_thread(file.read_text, encoding="utf-8")


async def show_runs(page: Page, url: str) -> None:
    """Show a run, a chat that follows up on it, and a run without an answer."""
    await drop_documents(page, url)
    first = await finish(url, method="par-rag")
    await finish(url, method="closed-book")
    await finish(url, method="par-rag", question=FOLLOW_UP, after=first)
    await page.get_by_role("link", name="All runs", exact=True).click()
    await expect(page.locator(ROWS)).to_have_count(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_runs_are_searched_filtered_and_exported(page: Page, site: Site, axe: str, scheme: str) -> None:
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    await show_runs(page, await site())
    rows = page.locator(ROWS)
    await expect(rows).to_contain_text([FOLLOW_UP, QUESTION, QUESTION])
    await expect(rows.last).to_contain_text(re.compile("answered|weakly supported"))
    await expect(rows.last).to_contain_text("7 calls")
    await expect(rows.last).to_contain_text("today")
    assert await faults(page, axe) == []
    if scheme == "light":
        await picture(page, "runs")

    search = page.get_by_label("Search questions and answers")
    await search.fill("kelp")
    await expect(rows).to_have_count(2)
    await expect(search).to_be_focused()
    await search.fill("nobody")
    await expect(page.get_by_text("No run matches.")).to_be_visible()
    await search.fill("")
    await page.get_by_label("Status").select_option("unknown")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("closed-book")
    await page.reload()
    await expect(rows).to_have_count(1)
    await page.get_by_label("Status").select_option("")
    await page.get_by_label("To", exact=True).fill("2020-01-01")
    await expect(page.get_by_text("No run matches.")).to_be_visible()
    await page.get_by_role("link", name="All runs", exact=True).click()
    await expect(rows).to_have_count(3)

    await page.get_by_label("Select all runs").check()
    await expect(page.get_by_text("3 runs selected")).to_be_visible()
    table = list(csv.DictReader(io.StringIO(await saved(page, "Table (CSV)"))))
    assert sorted(row["outcome"] for row in table) == ["answered", "answered", "unknown"]
    assert "[^1]: Pellowrig Light: “" in await saved(page, "Answers (Markdown)")


async def test_selected_runs_are_compared_and_deleted(page: Page, site: Site, axe: str) -> None:
    await show_runs(page, await site())
    rows = page.locator(ROWS)
    await page.get_by_label("Select all runs").check()
    await page.get_by_role("button", name="Clear the selection").click()
    for text in ("closed-book", FOLLOW_UP):
        await rows.filter(has_text=text).get_by_role("checkbox").check()
    await page.get_by_role("button", name="Compare").click()
    sides = [page.get_by_role("region", name=f"{which} branch") for which in ("First", "Second")]
    await expect(sides[0]).to_contain_text("Kelp Fair")
    await expect(sides[1]).to_contain_text("no answer found")

    await page.get_by_role("link", name="All runs", exact=True).click()
    await rows.filter(has_text="closed-book").get_by_role("checkbox").check()
    await page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("alertdialog", name="Delete 1 run?")
    assert await faults(page, axe) == []
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(rows).to_have_count(3)
    await page.get_by_role("button", name="Delete", exact=True).click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(rows).to_have_count(2)


async def test_list_of_many_runs_is_shown_page_by_page(page: Page, site: Site) -> None:
    await drop_documents(page, url := await site())
    for _ in range(51):
        await finish(url, method="closed-book")
    await page.goto(f"{url}/#/runs")
    rows = page.locator(ROWS)
    await expect(rows).to_have_count(50)
    await page.get_by_role("button", name="Show more").click()
    await expect(rows).to_have_count(51)
