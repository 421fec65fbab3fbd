"""The page in a browser: documents, questions, steps, citations, stops, forks, reloads.

SLEUTH_PICTURES=FOLDER also saves the pictures of the documentation (`make pictures`).
"""

import re
from pathlib import Path

import httpx
import pytest
from page_fixture import Site
from page_use import (
    DOCUMENTS,
    QUESTION,
    QUOTE,
    Teller,
    ask,
    ask_and_wait,
    drop_documents,
    expect_status,
    faults,
    open_form,
    open_methods,
    open_tab,
    picture,
    source,
)
from playwright.async_api import Page, Route, expect

from sleuth.tools.errors import ModelUnavailable


async def test_documents_are_uploaded_found_opened_and_deleted(page: Page, site: Site) -> None:
    await drop_documents(page, await site())
    await page.reload()
    await expect(page.get_by_text("3 files: 3 added.")).to_be_visible()
    await page.get_by_role("searchbox", name="Search").fill("nobody")
    await expect(page.get_by_text("No document matches.")).to_be_visible()
    await page.get_by_role("searchbox", name="Search").fill("oake")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("button", name="Bastian Oake", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("could not remember learning to swim")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="Delete Bastian Oake").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("button", name="Delete Bastian Oake")).to_have_count(0)
    await page.get_by_role("searchbox", name="Search").fill("")
    await expect(page.locator("tbody tr")).to_have_count(2)
    await page.get_by_label("Select all documents").check()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.get_by_role("alertdialog", name="Delete 2 documents?").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No documents yet.")).to_be_visible()
    await page.evaluate("location.hash = '#/documents/bastian-oake.md'")
    await expect(page.get_by_role("dialog")).to_contain_text("This document is no longer in the collection.")


@pytest.mark.nightly
async def test_folder_is_uploaded_with_one_summary(page: Page, site: Site, tmp_path: Path, axe: str) -> None:
    for name, text in {"a/README.md": "The first.", "b/README.md": "The second.", ".git/HEAD": "x", "c.md": ""}.items():
        (file := tmp_path / "house" / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    await page.goto(f"{await site()}/#/documents")
    await page.locator("input[webkitdirectory]").set_input_files(tmp_path / "house")
    await expect(page.get_by_text("3 files: 2 added, 1 failed.")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_text("house/c.md: is empty. Fill it, or leave it out.")
    await page.get_by_text("Files of this upload").click()
    files = page.get_by_role("list", name="Files of this upload").get_by_role("listitem")
    await expect(files).to_have_text(["house/a/README.md added", "house/b/README.md added"])
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await faults(page, axe) == []


@pytest.mark.nightly
async def test_upload_can_be_cancelled_while_it_is_sent(page: Page, site: Site) -> None:
    await page.goto(f"{await site()}/#/documents")
    await page.route("**/v1/documents", lambda _held: None)
    await page.locator("input[type=file]").first.set_input_files(DOCUMENTS)
    await expect(page.get_by_text("Sending the files")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("alert")).to_have_text("The upload was cancelled.")
    await expect(page.get_by_text("No documents yet.")).to_be_visible()


async def test_answer_footnotes_open_the_quoted_passage(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, await site())
    teller.gates["reviewer/review"].clear()
    await ask(page, skip_supported="false")
    steps = page.get_by_role("region", name="Steps")
    await expect(steps).to_contain_text("Draft: Bastian Oake")
    await expect(steps).to_contain_text("Checking the draft")
    await expect(steps.locator(".draft")).to_have_count(0)  # a reply in JSON without words for people
    await expect(page.get_by_role("timer")).to_have_text(re.compile(r"^\d+ s$"))
    await picture(page, "steps")
    teller.gates["reviewer/review"].set()
    answer = page.get_by_role("region", name="Answer")
    await expect(answer).to_contain_text("Kelp Fair")
    await expect(page.locator(".draft")).to_have_count(0)
    await expect_status(page, "answered")
    await picture(page, "answer")
    await page.get_by_role("button", name="More", exact=True).first.click()
    async with page.expect_download():
        await page.get_by_role("button", name="Save as Markdown", exact=True).first.click()
    await answer.get_by_role("button", name=re.compile("Footnote .*: Sennick Harbour")).click()
    await expect(source(page).locator("mark")).to_be_in_viewport()
    await expect(source(page).locator("mark")).to_contain_text(QUOTE)
    await picture(page, "citation")


@pytest.mark.nightly
async def test_address_of_an_annotation_opens_its_source(page: Page, site: Site) -> None:
    await drop_documents(page, url := await site())
    asked = {"model": "par-rag", "input": QUESTION}
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        reply = (await client.post("/v1/responses", json=asked)).json()
    [message] = [each for each in reply["output"] if each["type"] == "message"]
    address = message["content"][0]["annotations"][-1]["url"]
    await page.goto(address)
    await expect(source(page).locator("mark")).to_contain_text(QUOTE)
    await page.keyboard.press("Escape")
    await page.goto(re.sub(r"citation=.*", "citation=9", address))
    await expect(page.get_by_text("The link names source 9, which this answer does not have")).to_be_visible()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    await expect(source(page)).to_have_count(0)


async def nodes_in(page: Page) -> list[str]:
    """Return the nodes of the steps that the page lists, also where the list is folded."""
    nodes: list[str] = await page.locator(".steps li").evaluate_all("all => all.map(each => each.dataset.node)")
    return nodes


@pytest.mark.nightly
async def test_run_is_stopped_resumed_and_followed_across_a_reload(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, await site())
    teller.gates["reviewer/review"].clear()
    await ask(page, skip_supported="false")
    steps = page.get_by_role("region", name="Steps")
    await expect(steps).to_contain_text("Checking the draft")
    await page.get_by_role("button", name="Stop").click()
    await expect_status(page, "stopped")
    await expect(steps).to_contain_text("Stopped. Resume it to continue")
    await page.get_by_role("button", name="Resume").click()
    await expect(steps).to_contain_text("Checking the draft")
    before = await nodes_in(page)
    await page.reload()
    await expect_status(page, "running")
    await expect(steps.locator("li")).to_have_count(len(before))
    assert await nodes_in(page) == before
    await expect(steps).to_contain_text("Draft: Bastian Oake")
    teller.gates["reviewer/review"].set()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    await open_tab(page, "How this was found")
    visited = await nodes_in(page)
    assert visited[: len(before)] == before == ["plan", "retrieve_coarse", "draft", "retrieve_fine", "review"]
    assert visited[-2:] == ["answer", "check_evidence"]


@pytest.mark.nightly
async def test_failed_run_shows_its_error_and_can_be_resumed(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, await site())
    teller.fault = ModelUnavailable("No model server answers: start one.")
    await ask(page)
    await expect_status(page, "failed")
    await expect(page.get_by_role("alert")).to_have_text("No model server answers: start one.")
    teller.fault = None
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    await expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.nightly
async def test_broken_stream_continues_from_the_last_event(page: Page, site: Site) -> None:
    await ask_and_wait(page, url := await site())
    after: list[str | None] = []

    async def cut(route: Route) -> None:
        after.append(route.request.headers.get("last-event-id"))
        if len(after) > 1:
            await route.continue_()
            return
        whole = await (await route.fetch()).text()
        await route.fulfill(body="\n\n".join(whole.split("\n\n")[:3]) + "\n\n", content_type="text/event-stream")

    thread = page.url.rpartition("/")[2]
    await page.route("**/events", cut)
    await page.reload()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    async with httpx.AsyncClient(base_url=url) as client:
        history = (await client.get(f"/v1/runs/{thread}/history")).json()
    visited = [node for moment in reversed(history) for node in moment["node"]]
    await open_tab(page, "How this was found")
    await expect(page.locator(".steps li")).to_have_count(len(visited))
    assert await nodes_in(page) == visited
    assert after[:2] == [None, "3"]


@pytest.mark.nightly
async def test_plan_is_changed_in_a_fork_and_branches_are_compared(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, await site())
    teller.mistaken = True
    await ask(page)
    await expect_status(page, "unknown")
    await expect(page.get_by_role("region", name="Answer")).not_to_contain_text("Kelp Fair")
    original = page.url
    await open_tab(page, "Explore")
    await page.get_by_role("button", name="Plan step 1", exact=True).click()
    details = page.get_by_role("region", name="Plan plan then search")
    await expect(details).to_contain_text("plan 2: Which medal was named after #1?")
    await expect(details.get_by_role("region", name="Prompt")).to_contain_text(QUESTION)
    await expect(details.get_by_role("region", name="Reply")).to_contain_text("Which medal")
    await picture(page, "explorer")
    await page.get_by_role("button", name="Search 3 times", exact=True).click()
    search = page.get_by_role("region", name="Search for Who built the Pellowrig Light?")
    await expect(search.get_by_role("listitem").first).to_contain_text(re.compile(r"rank 1, score \d"))
    await expect(search).to_contain_text("The Pellowrig Light stands on Ram Rock")
    await page.get_by_role("button", name="Plan step 1", exact=True).click()

    await details.get_by_role("button", name="Change the state and fork").click()
    form = page.get_by_role("form", name="Fork")
    await form.get_by_label("Step 2", exact=True).fill("In which town was #1 born?")
    await form.get_by_role("button", name="Add a step", exact=True).click()
    await form.get_by_label("Step 3", exact=True).fill("Which fair is held in #2?")
    await picture(page, "fork")
    await form.get_by_role("button", name="Fork and run").click()
    await expect_status(page, "answered")
    assert page.url != original
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")

    await open_tab(page, "Compare")
    first, second = (page.get_by_role("region", name=f"{which} branch") for which in ("First", "Second"))
    await expect(first.locator(".answer-text")).not_to_contain_text("Kelp Fair")
    await expect(second.locator(".answer-text")).to_contain_text("Kelp Fair")
    steps = page.get_by_role("region", name="Steps")
    await expect(steps).to_contain_text("steps alike")
    await expect(steps.get_by_role("listitem").first).to_contain_text("Changed by hand")
    await picture(page, "compare")
    await page.goto(original)
    await expect_status(page, "unknown")
    await expect(page.get_by_role("region", name="Answer")).not_to_contain_text("Kelp Fair")


async def test_fork_into_another_method_is_a_separate_run(page: Page, site: Site) -> None:
    await ask_and_wait(page, await site())
    first = page.url
    await open_tab(page, "Explore")
    await page.get_by_role("button", name="Change the state and fork").click()
    await page.get_by_label("Continue with").select_option("plain-rag")
    await page.get_by_role("button", name="Fork and run").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Kelp Fair")
    assert page.url != first
    await open_tab(page, "Compare")
    await expect(page.get_by_text("Forked from")).to_be_visible()
    await expect(page.get_by_role("region", name="Second branch")).to_contain_text("Kelp Fair")


@pytest.mark.nightly
async def test_edits_of_a_step_are_kept_while_the_run_continues(page: Page, site: Site, teller: Teller) -> None:
    await drop_documents(page, await site())
    teller.gates["reviewer/review"].clear()
    await ask(page, skip_supported="false")
    await open_tab(page, "Explore")
    await page.locator(".timeline").get_by_text("retrieve_fine").wait_for()  # the last step before the gate
    await page.get_by_role("button", name="Change the state and fork").click()
    form = page.get_by_role("form", name="Fork")
    field = form.get_by_label("question", exact=True)
    await field.fill(edited := "Another question?")
    teller.gates["reviewer/review"].set()
    await expect_status(page, "answered")
    await page.wait_for_load_state("networkidle")
    await expect(page.locator(".timeline li").last.get_by_role("button")).not_to_have_attribute("aria-current", "step")
    await expect(field).to_have_value(edited)
    await expect(form.get_by_text("question, changed")).to_have_count(1)


@pytest.mark.nightly
async def test_long_answer_has_footnotes_after_each_sentence(page: Page, site: Site) -> None:
    await ask_and_wait(page, await site(), "ras", long_answers="true")
    text = page.locator(".answer-text")
    await expect(text).to_have_text(
        re.compile(r"Bastian Oake\.1 .+Sennick Harbour\.2 .+Kelp Fair\.3 The answer is Kelp Fair\.123$")
    )
    await open_tab(page, "How this was found")
    await expect(page.locator(".notes li", has_text=QUESTION)).to_have_count(1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("method", "settings", "title"),
    [("ras", {}, "Triples found so far"), ("crp-rag", {"shortcut": "false"}, "Reasoning graph")],
)
async def test_findings_of_a_run_are_drawn_as_a_graph(
    page: Page, site: Site, method: str, settings: dict[str, str], title: str
) -> None:
    await ask_and_wait(page, await site(), method, **settings)
    await open_tab(page, "Explore")
    await page.reload()  # the details of a run in progress are drawn again with each checkpoint
    drawing = page.get_by_role("group", name=title)
    await expect(drawing.locator(".react-flow__edge").nth(1)).to_be_visible()
    await expect(drawing).to_contain_text("Bastian Oake" if method == "ras" else QUESTION)
    await drawing.scroll_into_view_if_needed()
    await picture(page, method)


@pytest.mark.nightly
async def test_server_with_keys_shows_the_key_dialog(page: Page, site: Site) -> None:
    await page.goto(await site(keys="anna:apple-secret"))
    dialog = page.get_by_role("dialog", name="This server requires an API key")
    await dialog.get_by_label("Key").fill("wrong")
    await dialog.get_by_role("button").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("rejected this key")
    await dialog.get_by_label("Key").fill("apple-secret")
    await dialog.get_by_role("button").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("region", name="Add documents")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_violation(page: Page, site: Site, axe: str, scheme: str) -> None:
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    await drop_documents(page, await site())
    found = {"documents": await faults(page, axe)}
    await ask(page, "ras")
    await expect_status(page, "answered")
    found["answer"] = await faults(page, axe)
    for tab in ("How this was found", "Explore", "Compare"):
        await open_tab(page, tab)
        await page.wait_for_load_state("networkidle")
        found[tab] = await faults(page, axe)
    await open_tab(page, "Answer")
    await page.get_by_role("button", name=re.compile("Footnote")).first.click()
    await expect(source(page).locator("mark")).to_be_visible()
    found["citation"] = await faults(page, axe)
    await page.keyboard.press("Escape")
    await open_form(page)
    await open_methods(page)
    found["ask"] = await faults(page, axe)
    assert {place: bad for place, bad in found.items() if bad} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("width", [360, 760, 1120])
async def test_no_view_is_wider_than_the_screen(page: Page, site: Site, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 740})
    await ask_and_wait(page, await site())
    for tab in ("Answer", "How this was found", "Explore", "Compare"):
        if tab != "Answer":
            await open_tab(page, tab)
        await page.wait_for_load_state("networkidle")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, tab
    if width == 360:
        await open_tab(page, "Answer")
        await picture(page, "phone")


@pytest.mark.nightly
async def test_all_controls_are_reachable_by_keyboard(page: Page, site: Site) -> None:
    await drop_documents(page, await site())
    await open_form(page)
    await page.get_by_role("textbox", name="Question", exact=True).focus()
    await page.keyboard.type(QUESTION)
    await page.keyboard.press("Enter")
    await expect_status(page, "answered")
    footnote = page.get_by_role("button", name=re.compile("Footnote 1"))
    await footnote.focus()
    await page.keyboard.press("Enter")
    await expect(source(page)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(footnote).to_be_focused()
    await open_tab(page, "Explore")
    rows = page.locator(".timeline button")
    await rows.nth(1).focus()
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(2)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(rows.nth(2)).to_have_attribute("aria-current", "step")
