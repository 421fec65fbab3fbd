"""`sleuth ask` without a question: a chat in a terminal, with stopped and resumed answers."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive
from recording_proxy import proxying
from scripted_backend import Asked, Scripted
from terminal import SLEUTH, Terminal
from typer.testing import CliRunner

import sleuth
from sleuth.studio.cli.app import app
from sleuth.studio.cli.interactive import MAX_HISTORY

FAIR = "The Kelp Fair is held at Brindlecote every May."
READING = {"answerable": True, "answer": "Kelp Fair", "citations": [{"source": 1, "quote": "The Kelp Fair"}]}


def reply(asked: Asked) -> Any:
    match asked.prompt:
        case "router/route":
            return "follow-up"
        case "rewriter/rewrite":
            return {"question": "Which fair is held at Brindlecote?"}
    return READING


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    async with proxying(Scripted(reply, slower=0.5)) as proxy:
        own = {"SLEUTH_MODEL_URL": proxy.url, "COLUMNS": "200", "TERM": "xterm"}
        yield await archive(tmp_path, files={"fair.md": FAIR}) | own


def converse(environment: dict[str, str]) -> str:
    terminal = Terminal([*SLEUTH, "ask", "--method", "plain-rag"], environment)
    terminal.expect_exact("Ctrl-D ends the chat.")
    terminal.expect_exact("> ")
    terminal.sendline("Which fair is held at Brindlecote?")
    terminal.expect_exact("classify")
    terminal.interrupt()
    terminal.expect_exact("Stopped. Press Enter to resume it.")
    terminal.sendline("Another question?")
    terminal.expect_exact("Press Enter to resume it.")
    terminal.sendline("")
    terminal.expect_exact("“The Kelp Fair")
    terminal.expect_exact("> ")
    terminal.sendline("And when?")
    terminal.expect_exact("refine")
    terminal.expect_exact("“The Kelp Fair")
    terminal.expect_exact("> ")
    terminal.sendline("/sources")
    terminal.expect_exact("“The Kelp Fair")
    terminal.sendline("/hlep")
    terminal.expect_exact("Did you mean help?")
    terminal.sendline("/method auto")
    terminal.expect_exact("answered by auto.")
    terminal.expect_exact("> ")
    terminal.interrupt_until("> ")
    terminal.sendeof()
    terminal.expect_exact("To continue: sleuth ask --method chat --thread ")
    assert terminal.end() == 0
    return terminal.shown


async def test_chat_is_stopped_resumed_and_continued(environment: dict[str, str]) -> None:
    shown = await asyncio.to_thread(converse, environment)
    (thread,) = re.findall(r"--thread (\w+)", shown)
    settings = sleuth.Settings(home=Path(environment["SLEUTH_HOME"]), embedder="none")
    assert len(await sleuth.history(thread, settings=settings)) > 10
    history = (settings.home / "history").read_text()
    assert "And when?" in history
    assert len(history.splitlines()) < MAX_HISTORY


def test_chat_needs_a_terminal() -> None:
    done = CliRunner().invoke(app, ["ask"])
    assert done.exit_code != 0
    assert "a chat needs a terminal" in str(done.exception or done.output)
