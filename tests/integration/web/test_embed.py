"""`embed.js` on a page of another origin, in Chromium: it asks, cites, and can do nothing else."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from asgi_server import serving, started
from chat_scene import GREETING, archive, reply_of
from page_use import faults
from playwright.async_api import Page, expect
from serve_scene import QUESTION, Oracle, opening
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

KEY = "Publ1c"
OWNER = {"Authorization": "Bearer S3cret"}


@pytest.fixture
async def handbook() -> AsyncIterator[dict[str, str]]:
    """A page of another origin, once `script` has its script; `url` is its address."""
    page = {"script": "", "scheme": "light"}

    def show(_request: object) -> HTMLResponse:
        head = f"<title>Handbook</title><meta name=color-scheme content={page['scheme']}>{page['script']}"
        return HTMLResponse(f"<!doctype html><html lang=en><head>{head}</head><main><h1>Handbook</h1></main></html>")

    async with serving(Starlette(routes=[Route("/", show)])) as url:
        page["url"] = url
        yield page


@pytest.fixture
async def server(tmp_path: Path, oracle: Oracle, handbook: dict[str, str]) -> AsyncIterator[str]:
    """A server whose key is for the page, with documents of its owner."""
    oracle.said = reply_of
    home = Path((await archive(tmp_path))["SLEUTH_HOME"])
    keys = {"api_keys": "local:S3cret", "embed_keys": f"local:{KEY}@{handbook['url']}"}
    app = create_app(Settings(home=home, embedder="none", **keys), open_model=opening(oracle))
    async with started(app), serving(app) as url:
        handbook["script"] = f'<script src="{url}/embed.js" data-key="{KEY}"></script>'
        yield url


async def ask(page: Page, question: str) -> None:
    await page.get_by_role("textbox", name="Question").fill(question)
    await page.keyboard.press("Enter")


async def test_page_of_another_origin_asks_and_shows_sources(
    page: Page, server: str, handbook: dict[str, str], axe: str
) -> None:
    await page.goto(handbook["url"])
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="Ask a question")
    await ask(page, "Hello!")
    await expect(panel).to_contain_text(GREETING)
    await ask(page, QUESTION)
    await expect(panel.locator(".ai").last).to_contain_text("Edric Gannow [1]")
    await expect(panel.get_by_role("list", name="Sources")).to_have_text("The Pellowrig Light: “built by Edric Gannow”")
    assert await faults(page, axe) == []

    await page.reload()
    await page.get_by_role("button", name="Ask a question").click()
    await expect(panel.locator(".human")).to_have_text(["Hello!", QUESTION])
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(page.get_by_role("button", name="Ask a question")).to_be_focused()


async def test_panel_continues_after_a_lost_connection(page: Page, server: str, handbook: dict[str, str]) -> None:
    await page.route("**/v1/runs/*/events", lambda route: route.abort(), times=1)
    await page.goto(handbook["url"])
    await page.get_by_role("button", name="Ask a question").click()
    await ask(page, QUESTION)
    await expect(page.locator(".ai").last).to_contain_text("Edric Gannow [1]", timeout=30_000)

    await page.route("**/v1/runs", lambda route: route.abort())
    await ask(page, QUESTION)
    await expect(page.get_by_role("alert")).to_have_text("The server cannot be reached, or does not answer this page.")


async def test_panel_has_the_color_scheme_of_its_page(page: Page, server: str, handbook: dict[str, str]) -> None:
    colors = []
    for handbook["scheme"] in ("light", "dark"):
        await page.goto(handbook["url"])
        await page.get_by_role("button", name="Ask a question").click()
        panel = page.get_by_role("dialog")
        colors.append(await panel.evaluate("(panel) => getComputedStyle(panel).backgroundColor"))
    assert colors == ["rgb(255, 255, 255)", "rgb(18, 18, 18)"]


async def test_page_of_a_third_origin_is_refused(
    page: Page, server: str, handbook: dict[str, str], oracle: Oracle
) -> None:
    await page.goto(handbook["url"].replace("127.0.0.1", "localhost"))
    await page.get_by_role("button", name="Ask a question").click()
    await ask(page, QUESTION)
    await expect(page.get_by_role("alert")).to_have_text("The server cannot be reached, or does not answer this page.")
    assert oracle.requests == []


UPLOAD = """async ([url, key]) => {
    const body = new FormData();
    body.append("files", new File(["text"], "a.txt"));
    const sent = await fetch(`${url}/v1/documents`, {method: "POST", body, headers: {Authorization: `Bearer ${key}`}});
    return [sent.status, (await sent.json()).error.message];
}"""


async def test_key_of_a_page_cannot_upload(page: Page, server: str, handbook: dict[str, str]) -> None:
    await page.goto(handbook["url"])
    status, message = await page.evaluate(UPLOAD, [server, KEY])
    assert (status, message) == (403, f"This key can only chat, by `embed.js` on pages of {handbook['url']}.")


async def test_key_of_a_page_reaches_its_chats_only(server: str, handbook: dict[str, str]) -> None:
    here = {"Authorization": f"Bearer {KEY}", "Origin": handbook["url"]}
    async with httpx.AsyncClient(base_url=server, headers=here, timeout=60) as client:
        private = await client.post("/v1/runs", json={"question": QUESTION, "thread": "mine"}, headers=OWNER)
        asked = {"question": QUESTION, "method": "par-rag", "values": {"graph_model": "/"}, "model": "other"}
        own = (await client.post("/v1/runs", json=asked)).json()["thread"]
        assert re.fullmatch("local:embed-[0-9a-f]{32}", own)
        assert (await client.get(f"/v1/runs/{own}/events")).status_code == 200
        thread = (await client.get(f"/v1/runs/{own}")).json()["thread"]
        assert (thread["method"], thread["options"]["values"]) == ("chat", {"method": "auto"})
        assert (await client.post("/v1/runs", json={"question": "Hello!", "thread": own})).status_code == 201
        assert (await client.post("/v1/runs", json={"question": "Hello!", "thread": "mine"})).status_code == 400
        assert private.json()["thread"] == "local:mine"
        for verb, path in [
            *(("GET", f"/v1/runs{path}") for path in ("", "/mine", "/local:mine", f"/{own}/export", f"/{own}/history")),
            *(("POST", f"/v1/runs/{own}/{action}") for action in ("stop", "resume", "fork")),
            *(("PUT", f"/v1/runs/{own}/title"), ("DELETE", f"/v1/runs/{own}"), ("DELETE", "/v1/documents/light.md")),
            *(("GET", path) for path in ("/v1/documents", "/v1/search?q=light", "/metrics", "/langgraph/info")),
            *(("POST", path) for path in ("/v1/chat/completions", "/mcp", "/langgraph/threads")),
        ]:
            assert (await client.request(verb, path)).status_code == 403, path
        for origin in ("https://example.org", "null", handbook["url"] + "0", ""):
            reply = await client.post("/v1/runs", json={"question": QUESTION}, headers={"Origin": origin})
            assert reply.status_code == 403, origin
