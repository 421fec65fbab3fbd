"""Actions on the page: drop files, ask, open a tab, take a picture, check accessibility."""

import os
from pathlib import Path

from page_scene import DOCUMENTS, QUESTION
from playwright.async_api import Page, expect

DROP = """([names, texts]) => {
    const transfer = new DataTransfer();
    names.forEach((name, at) => transfer.items.add(new File([texts[at]], name)));
    return transfer;
}"""


async def picture(page: Page, name: str) -> None:
    """A picture for the documentation, where they are wanted."""
    if folder := os.environ.get("SLEUTH_PICTURES"):
        await page.screenshot(path=Path(folder) / f"{name}.png")


async def drop_documents(page: Page, url: str) -> None:
    """Drops the three documents and waits until they have been read in."""
    await page.goto(f"{url}/#/documents")
    files = await page.evaluate_handle(
        DROP, [[file.name for file in DOCUMENTS], [file.read_text() for file in DOCUMENTS]]
    )
    await page.get_by_role("region", name="Add documents").dispatch_event("drop", {"dataTransfer": files})
    await expect(page.get_by_text("3 files: 3 added.")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete Pellowrig Light")).to_be_visible()


async def ask(page: Page, method: str = "par-rag", **settings: str) -> None:
    """Types the question, chooses a method and its settings, and asks."""
    await page.get_by_role("link", name="Ask", exact=True).click()
    await choose_method(page, method)
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    if settings:
        await page.get_by_label("For research").check()
        for name, value in settings.items():
            await page.get_by_label(name, exact=True).select_option(value)
    await page.get_by_role("button", name="Ask", exact=True).click()
    await expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()


async def open_methods(page: Page) -> None:
    """Show the methods and settings on the form for a question."""
    await page.get_by_role("button", name="Method: ").click()


async def choose_method(page: Page, method: str) -> None:
    """Choose the card of a method; those of baselines are folded."""
    await open_methods(page)
    card = page.locator(".method", has=page.get_by_text(method, exact=True))
    await expect(page.locator(".method").first).to_be_visible()
    if not await card.is_visible():
        await page.get_by_text("Baselines for comparison").click()
    await card.get_by_role("radio").check()


async def ask_and_wait(page: Page, url: str, method: str = "par-rag", **settings: str) -> None:
    """Upload the documents, ask the question and wait until the run has ended."""
    await drop_documents(page, url)
    await ask(page, method, **settings)
    await expect_status(page, "answered")


async def open_tab(page: Page, name: str) -> None:
    await page.get_by_role("navigation", name="This run").get_by_role("link", name=name).click()


async def expect_status(page: Page, status: str) -> None:
    await expect(page.locator(".run-head .chip")).to_have_text(status)


async def faults(page: Page, axe: str) -> list[str]:
    """Return axe-core's findings, each with its first place."""
    await page.evaluate(axe)
    violations = (await page.evaluate("axe.run()"))["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in violations]
