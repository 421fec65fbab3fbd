"""Ten tasks as a person does them, with the clicks that each takes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from page_fixture import Site
from page_scene import FOLLOW_UP, QUESTION
from page_use import drop_documents, expect_status, open_tab
from playwright.async_api import Locator, Page, expect


class Person:
    """Clicks and types on a page; opening a list of choices and choosing is two clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks: dict[str, int] = {}

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        self._name = name
        self.clicks[name] = 0
        yield

    async def click(self, *path: tuple[str, str]) -> None:
        """Click elements by role and name, one after the other."""
        for role, name in path:
            await self.click_on(self.page.get_by_role(role, name=name, exact=True).first)  # type: ignore[arg-type]

    async def click_on(self, place: Locator) -> None:
        self.clicks[self._name] += 1
        await place.click()

    async def type(self, place: Locator, text: str) -> None:
        """Type into a field; it is clicked first, unless the cursor is in it."""
        await expect(place).to_be_visible()
        if not await place.evaluate("element => element === document.activeElement"):
            await self.click_on(place)
        await place.fill(text)


@pytest.mark.nightly
async def test_tasks_take_few_clicks(page: Page, site: Site) -> None:
    await drop_documents(page, url := await site())
    await page.goto(f"{url}/")
    person = Person(page)
    await ask_and_read(page, person)
    await find_runs(page, person)
    assert person.clicks == {
        "ask with a method, and read the answer": 3,
        "see the sentence that the answer rests on, in its document": 1,
        "see how the answer was found": 1,
        "read what the model was asked in the first step": 2,
        "save the answer": 2,
        "ask a follow-up question": 2,
        "ask the question again with another method": 2,
        "find an earlier run by its words, and open it": 3,
        "compare with another run of the question": 1,
        "compare two runs": 4,
        "delete a run": 4,
    }


async def ask_and_read(page: Page, person: Person) -> None:
    question = page.get_by_role("textbox", name="Question", exact=True)
    await expect(question).to_be_focused()

    with person.task("ask with a method, and read the answer"):
        await person.type(question, QUESTION)
        await person.click_on(page.get_by_role("button", name="Method: auto"))
        await person.click_on(page.locator(".method", has=page.get_by_text("par-rag", exact=True)))
        await person.click(("button", "Ask"))
        await expect_status(page, "answered")
    with person.task("see the sentence that the answer rests on, in its document"):
        await person.click_on(page.get_by_role("region", name="Answer").get_by_role("button", name="Footnote").first)
        await expect(page.get_by_role("dialog").locator("mark")).to_be_in_viewport()
    await page.keyboard.press("Escape")
    with person.task("see how the answer was found"):
        await person.click_on(page.get_by_text("How this was found"))
        await expect(page.get_by_text("Looked for").first).to_be_visible()
    with person.task("read what the model was asked in the first step"):
        await person.click(("link", "Explore"), ("button", "Plan step 1"))
        await expect(page.get_by_role("region", name="Prompt").first).to_contain_text(QUESTION)
    await open_tab(page, "Answer")
    with person.task("save the answer"):
        async with page.expect_download():
            await person.click(("button", "More"), ("menuitem", "Save as Markdown"))
    first = page.url
    with person.task("ask a follow-up question"):
        await person.type(page.get_by_label("Follow-up question"), FOLLOW_UP)
        await person.click(("button", "Ask a follow-up"))
        await expect(page.get_by_role("heading", name=FOLLOW_UP)).to_be_visible()
        await expect_status(page, "answered")
    await page.goto(first)
    with person.task("ask the question again with another method"):
        await person.click(("button", "Retry with another method"))
        await expect(page.get_by_role("button", name="Method: crp-rag")).to_be_visible()
        await person.click(("button", "Ask"))
        await expect_status(page, "answered")
    with person.task("compare with another run of the question"):
        await person.click(("link", "Compare"))
        await expect(page.get_by_role("region", name="First branch").get_by_role("combobox")).to_contain_text("crp-rag")
        await expect(page.get_by_role("region", name="Second branch")).to_contain_text("Kelp Fair")


async def find_runs(page: Page, person: Person) -> None:
    with person.task("find an earlier run by its words, and open it"):
        await person.click(("link", "Runs"))
        await person.type(page.get_by_label("Search questions and answers"), "what fair")
        await person.click_on(page.get_by_role("row").get_by_role("link", name=FOLLOW_UP))
        await expect(page.get_by_role("heading", name=FOLLOW_UP)).to_be_visible()
    with person.task("compare two runs"):
        await person.click(("link", "Runs"))
        boxes = page.locator(".run-table tbody").get_by_role("checkbox")
        await person.click_on(boxes.nth(0))
        await person.click_on(boxes.nth(1))
        await person.click(("button", "Compare"))
        await expect(page.get_by_role("region", name="Second branch")).to_be_visible()
    with person.task("delete a run"):
        await person.click(("link", "Runs"))
        await person.click_on(boxes.nth(0))
        await person.click(("button", "Delete"))
        await person.click_on(page.get_by_role("alertdialog").get_by_role("button", name="Delete"))
        await expect(page.locator(".run-table tbody tr")).to_have_count(2)
