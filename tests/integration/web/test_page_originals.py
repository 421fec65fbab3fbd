"""Citations of PDF documents in a browser: the page of the original with the quote, and the text as the alternative."""

import re
from io import BytesIO
from pathlib import Path

import pytest
from page_fixture import Site
from page_use import DOCUMENTS, QUOTE, ask, expect_status, faults, picture, source
from playwright.async_api import Page, expect
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

PDF_FILES = re.compile(r"/assets/pdf[-.]")
"""Files of the page that only originals need."""


def harbour() -> bytes:
    """A PDF whose second page is the text about Sennick Harbour."""
    title, *paragraphs = DOCUMENTS[2].read_text(encoding="utf-8").split("\n\n")
    styles, out = getSampleStyleSheet(), BytesIO()
    name = title.lstrip("# ").strip()
    story = [
        Paragraph("A cover without a word about it.", styles["Title"]),
        PageBreak(),
        Paragraph(name, styles["Title"]),
        *(Paragraph(text, styles["BodyText"]) for text in paragraphs),
    ]
    SimpleDocTemplate(out, title=name).build(story)
    return out.getvalue()


async def upload(page: Page, url: str) -> None:
    await page.goto(f"{url}/#/documents")
    pdf = {"name": "sennick-harbour.pdf", "mimeType": "application/pdf", "buffer": harbour()}
    notes = [{"name": file.name, "mimeType": "text/markdown", "buffer": file.read_bytes()} for file in DOCUMENTS[:2]]
    await page.locator("input[type=file]").first.set_input_files([*notes, pdf])
    await expect(page.get_by_text("3 files: 3 added.")).to_be_visible()


async def open_citation(page: Page) -> str:
    """Ask, open the document of a citation, and return its quote."""
    await ask(page)
    await expect_status(page, "answered")
    quote = await page.locator(".sources mark", has_text=QUOTE).inner_text()
    answer = page.get_by_role("region", name="Answer")
    await answer.get_by_role("button", name=re.compile("Footnote .*: Sennick Harbour")).click()
    return quote


@pytest.mark.nightly
async def test_citation_opens_the_page_of_the_original_with_the_quote(page: Page, site: Site, axe: str) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text) if "Content Security" in message.text else None)
    await upload(page, await site())
    await expect(page.get_by_text("Sennick Harbour").first).to_be_visible()
    assert not [url for url in loaded if PDF_FILES.search(url)], "pdf.js was loaded before it was needed"
    cited = await open_citation(page)
    dialog = source(page)
    await expect(dialog.get_by_role("status")).to_have_text("Page 2 of 2")
    marks = dialog.locator(".textLayer mark")
    await expect(marks.first).to_be_in_viewport()
    assert " ".join(" ".join(await marks.all_inner_texts()).split()) == cited.rstrip(".")
    assert QUOTE in cited
    ink = await dialog.locator("canvas").evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(each => each < 99)"
    )
    assert ink, "the page is not drawn"
    assert await faults(page, axe) == []
    await picture(page, "original")
    await dialog.get_by_role("button", name="Previous page").click()
    await expect(dialog.get_by_role("status")).to_have_text("Page 1 of 2")
    await expect(dialog).to_contain_text("The quote is not on this page")
    await dialog.get_by_role("button", name="Text", exact=True).click()
    await expect(dialog.locator("mark")).to_contain_text(QUOTE)
    assert [url for url in loaded if PDF_FILES.search(url)]
    assert blocked == []


@pytest.mark.nightly
@pytest.mark.parametrize("damaged", [True, False], ids=["damaged", "missing"])
async def test_original_that_cannot_be_shown_is_replaced_by_the_text(
    page: Page, site: Site, tmp_path: Path, damaged: bool
) -> None:
    await upload(page, await site())
    for copy in [each for each in (tmp_path / "home" / "originals").rglob("*") if each.is_file()]:
        copy.write_bytes(b"damaged") if damaged else copy.unlink()
    await open_citation(page)
    dialog = source(page)
    await expect(dialog.locator("mark")).to_contain_text(QUOTE)
    if damaged:
        await expect(dialog.get_by_role("alert")).to_contain_text("The original cannot be shown")
        await expect(dialog.get_by_role("button", name="Text", exact=True)).to_have_attribute("aria-pressed", "true")
    else:
        await expect(dialog.get_by_role("button", name="Original")).to_have_count(0)
