"""No view scrolls sideways at 360 px, whatever it shows: long words, hashes, file names, tables and code."""

from typing import Any

import httpx
import pytest
from page_fixture import Site
from playwright.async_api import Page, expect
from serve_scene import Oracle, send, told

from sleuth.agents.model import Request

WIDTH = 360
LONGEST_ANSWER = 400
TOO_WIDE = """[document.documentElement, ...document.querySelectorAll("main, .dialog")]
    .filter(each => each.scrollWidth > each.clientWidth)
    .map(wide => {
        const inner = [...wide.querySelectorAll("*")].filter(each => {
            const edge = wide.getBoundingClientRect().left + wide.clientWidth;
            if (each.getBoundingClientRect().right <= edge) return false;
            for (let box = each.parentElement; box !== wide; box = box.parentElement)
                if (getComputedStyle(box).overflowX !== "visible") return false;
            return true;
        });
        return inner.slice(-2).map(each => each.outerHTML.slice(0, 120)).join(" ") || wide.tagName;
    })"""
"""The elements that make a view scroll sideways."""

WORD = "Donaudampfschiff" * 58 + "kapitän"
"""A word of more than 900 characters."""
HOSTILE = {
    "word": WORD,
    "hashes": " ".join([f"{7**300:0128x}"] * 3),
    "address": f"https://example.org/{'a-b_c.' * 60}?q={'%20' * 40}",
    "table": f"{'| wide' * 20} |\n{'| --- ' * 20}|\n{'| cell' * 20} |",
    "code": f"```\n{'call(argument, ' * 20}\n```",
    "spaces": "no\u00a0break\u00a0" * 30,
    "wide": "𝔘\u200d👩\u200d🚀字" * 60,
}


def reply_with(text: str) -> Any:
    def said(request: Request) -> dict[str, Any]:
        if request.prompt == "rewriter/rewrite":
            return {"question": text[:300]}
        sources = request.input["sources"]
        cited = [{"source": 1, "quote": sources[0]["text"][:200]}] if sources else []
        return {"answerable": True, "answer": text[:LONGEST_ANSWER], "citations": cited}

    return said


@pytest.fixture
def teller() -> Oracle:
    return Oracle()


async def fill(url: str, teller: Oracle) -> tuple[str, list[str]]:
    """Upload a document and ask a question for each text; return the upload and the runs."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:
        files = {f"{name}/{'file-name_' * 18}.md": f"# {text}\n\n{text}\n\n{text}\n" for name, text in HOSTILE.items()}
        ingest = await send(client, {**files, f"{'b' * 190}.pdf": "broken"})
        await client.get(f"/v1/ingests/{ingest}/events")
        runs: list[str] = []
        for text in HOSTILE.values():
            teller.said = reply_with(text)
            form = {"question": text, "method": "plain-rag", **({"after": runs[-1]} if len(runs) == 1 else {})}
            begun = await client.post("/v1/runs", json=form)
            assert begun.status_code == 201, begun.text
            runs.append(begun.json()["thread"])
            await told(client, runs[-1])
            await client.put(f"/v1/runs/{runs[-1]}/feedback", json={"rating": "down", "comment": text[:2000]})
    return ingest, runs


@pytest.mark.nightly
async def test_no_view_scrolls_sideways_whatever_it_shows(page: Page, site: Site, teller: Oracle) -> None:
    await page.set_viewport_size({"width": WIDTH, "height": 740})
    url = await site()
    ingest, runs = await fill(url, teller)
    views = [f"documents?ingest={ingest}", "", "runs", "nowhere", WORD, f"runs/{WORD}"]
    for run, other in zip(runs, [*runs[1:], runs[0]], strict=True):
        views += [
            f"runs/{run}{rest}" for rest in ("", "?citation=1", "?tab=explore", f"?tab=compare&a={run}&b={other}")
        ]
    await page.goto(f"{url}/#/documents")
    await page.evaluate("text => sessionStorage.setItem('sleuth-draft:ask', text)", WORD)
    too_wide: list[tuple[str, str]] = []
    for view in views:
        await page.evaluate("view => { location.hash = `#/${view}`; }", view)
        await expect(page.locator("main h1, main h2").first).to_be_visible()
        await expect(page.locator(".busy")).to_have_count(0)
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        too_wide += [(view[:60], found) for found in await page.evaluate(TOO_WIDE)]
        await page.keyboard.press("Escape")
    assert not too_wide, "\n".join(f"{view}: {found}" for view, found in too_wide)
