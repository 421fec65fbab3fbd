"""Documents, a question about them, a model that knows the answer, and actions on the page."""

import asyncio
import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect
from scripted_model import reply

from sleuth.agents.model import Message, Reply, Request
from sleuth.tools.errors import SleuthError
from training.simulation.gold import Gold, gold_of
from training.simulation.model import SimulatedModel
from training.simulation.parameters import Simulation

EXAMPLES = Path(__file__).parents[4] / "examples"
DOCUMENTS = [EXAMPLES / "corpus" / f"{name}.md" for name in ("pellowrig-light", "bastian-oake", "sennick-harbour")]
QUESTION = "Which fair is held in the birthplace of the builder of the Pellowrig Light?"
QUOTE = "Every year on the first weekend of March the town holds the Kelp Fair"

FOLLOW_UP = "And what fair do they have where its builder was born?"
TALK: dict[str, Any] = {
    "rewriter/rewrite": {"question": QUESTION},
    "router/route": "follow-up",
    "planner/outline": {"title": "The fair", "sections": [{"heading": "The light", "question": QUESTION}]},
    "answerer/section": {"sentences": [{"text": f"{QUOTE}.", "sources": [1, 2, 3]}]},
}
"""Messages of a conversation, and the outline and section of a report."""

MISTAKEN: dict[str, Any] = {
    "steps": [
        {"question": "Who built the Pellowrig Light?", "needs": []},
        {"question": "Which medal was named after #1?", "needs": [1]},
    ]
}
"""A plan that leaves the birthplace out."""


def _gold() -> Gold:
    rows = map(json.loads, (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {file.name: file.read_text(encoding="utf-8") for file in DOCUMENTS}
    passages = {name: (text.splitlines()[0].lstrip("# "), text) for name, text in texts.items()}
    return gold_of(next(row for row in rows if row["question"] == QUESTION), passages)


class Teller:
    """Answers from the gold, unless it is `mistaken` or has a `fault`; calls with a prompt whose gate is shut wait.

    A listener receives a reply before the gate.
    """

    context_window = 8192

    def __init__(self) -> None:
        self.mistaken = False
        self.fault: SleuthError | None = None
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(_opened)
        self._model = SimulatedModel(_gold(), Simulation(rates={}))

    def name_of(self, role: str) -> str:
        return "simulated"

    async def call(self, request: Request) -> Reply:
        said = await self._reply(request)
        if request.listener:
            request.listener.delta(said["text"])
        await self.gates[request.prompt].wait()
        if self.fault:
            raise self.fault
        return said

    async def _reply(self, request: Request) -> Reply:
        if said := TALK.get(request.prompt):
            return reply(said if isinstance(said, str) else json.dumps(said), prompt_tokens=100)
        if self.mistaken and request.prompt == "planner/plan":
            return reply(json.dumps(MISTAKEN), prompt_tokens=100)
        return await self._model.call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return await self._model.count_tokens(messages, role=role)


def _opened() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


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
    await open_form(page)
    await choose_method(page, method)
    await page.get_by_role("textbox", name="Question", exact=True).fill(QUESTION)
    if settings:
        await open_settings(page)
        await page.get_by_label("For research").check()
        for name, value in settings.items():
            await page.locator(f"[name={name}]").select_option(value)
    await send(page)
    await expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()


async def open_form(page: Page) -> None:
    """Show the form for a question; on a narrow screen its link is behind a button."""
    if await (conversations := page.get_by_role("button", name="Conversations")).is_visible():
        await conversations.click()
    await page.get_by_role("link", name="New question").click()


async def send(page: Page) -> None:
    """Send what is typed."""
    await page.get_by_role("button", name="Send", exact=True).click()


async def open_methods(page: Page) -> None:
    """Show the methods and settings on the form for a question."""
    await page.get_by_role("button", name="Method: ").click()


async def open_settings(page: Page) -> None:
    """Show the settings and the budget below the methods."""
    await page.get_by_text("Settings and budget").click()


async def choose_method(page: Page, method: str) -> None:
    """Choose a method; baselines but the fast one are folded."""
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
    """Show a tab of the details of the latest answer, or that answer."""
    details = page.get_by_role("navigation", name="Details")
    if name == "Answer":
        await page.get_by_role("link", name="Back to the answer").click()
        return
    if not await details.is_visible():
        await page.get_by_role("link", name="Details").last.click()
    await details.get_by_role("link", name=name).click()


def source(page: Page) -> Locator:
    """Return the panel with the document of a citation."""
    return page.get_by_role("region", name="Source", exact=True)


async def expect_status(page: Page, status: str) -> None:
    """Wait until the latest run of the page has this status; an answer may be weakly supported."""
    words: dict[str, Any] = {"answered": re.compile("^(answered|weakly supported)$"), "unknown": "no answer found"}
    wanted = words.get(status, status)
    await expect(page.locator("main .status .chip").last).to_have_text(wanted)


async def faults(page: Page, axe: str) -> list[str]:
    """Return axe-core's findings, each with its first place."""
    await page.evaluate(axe)
    violations = (await page.evaluate("axe.run()"))["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in violations]
