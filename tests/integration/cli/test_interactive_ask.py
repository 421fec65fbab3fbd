"""A chat on the command line: `sleuth ask` without a question in a terminal, and `--method chat --thread ID`."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import BACK, GREETING, archive, knowing
from cli_process import sleuth
from scripted_backend import Asked, Scripted, proxying
from serve_scene import QUESTION
from terminal import SLEUTH, Terminal
from typer.testing import CliRunner

from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.history import list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.studio.cli.app import app
from sleuth.studio.cli.interactive import MAX_HISTORY
from sleuth.tools.settings import Settings

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
    terminal = Terminal([*SLEUTH, "ask", "--method", "plain-rag", "--label", "The fair"], environment)
    terminal.expect_exact("Ctrl-D ends the chat.")
    terminal.expect_exact("> ")
    terminal.sendline("Which fair is held at Brindlecote?")
    terminal.expect_exact("classify")
    terminal.interrupt()
    terminal.expect_exact("Stopped. Press Enter to resume it.")
    terminal.sendline("")
    terminal.expect_exact("“The Kelp Fair")
    terminal.expect_exact("> ")
    terminal.sendline("Where is it held?")
    terminal.expect_exact("classify")
    terminal.interrupt()
    terminal.expect_exact("Stopped. Press Enter to resume it.")
    terminal.sendline("Thanks!")
    terminal.expect_exact("You are welcome!")
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
    settings = Settings(home=Path(environment["SLEUTH_HOME"]), embedder="none")
    async with open_store(settings) as store:
        assert len(await list_checkpoints(RunService(store), thread)) > 10
        assert (await store.threads.get(thread)).title == "The fair"
    typed = (settings.home / "history").read_text()
    assert "And when?" in typed
    assert len(typed.splitlines()) < MAX_HISTORY


def test_chat_needs_a_terminal() -> None:
    done = CliRunner().invoke(app, ["ask"])
    assert done.exit_code != 0
    assert "a chat needs a terminal" in str(done.exception or done.output)


CHAT = ("--method", "chat", "--thread", "talk")


async def test_chat_continues_across_commands(tmp_path: Path) -> None:
    async with knowing() as proxy:
        env = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}

        async def said(message: str, *more: str) -> Any:
            done = await sleuth("ask", message, *CHAT, *more, "--json", **env)
            assert done.status == 0, done.err
            return done.json()

        hello = await said("Hello!", "--set", "method=plain-rag")
        assert (hello["thread"], hello["method"], hello["text"]) == ("talk", "chat", GREETING)
        back = await said("Who built it?")
        assert (back["status"], back["text"], back["asks"]) == ("waiting", BACK["question"], BACK)
        waiting = await sleuth("resume", "talk", **env)
        assert "sleuth ask REPLY --method chat --thread talk" in " ".join(waiting.out.split())
        answer = await said("the light")
        assert (answer["status"], answer["text"], answer["question"]) == ("answered", "Edric Gannow", QUESTION)
        again = await said("And who built the light?")
        assert (again["text"], len(again["citations"])) == ("Edric Gannow", 1)
        assert "asks" not in again
    shown, resumed, listed, history, drawn, other = await asyncio.gather(
        sleuth("runs", "show", "talk", "--json", **env),
        sleuth("resume", "talk", "--json", **env),
        sleuth("runs", "list", "--json", **env),
        sleuth("runs", "history", "talk", "--json", **env),
        sleuth("runs", "history", "talk", **env),
        sleuth("ask", QUESTION, "--thread", "talk", **env | {"SLEUTH_MODEL_URL": proxy.url}),
    )
    assert shown.json() == resumed.json() == again
    assert [(run["method"], run["part_of"]) for run in listed.json()] == [("chat", ""), *[("plain-rag", "talk")] * 2]
    assert [moment["source"] for moment in history.json()].count("input") == 3, "a reply goes on with its turn"
    assert "refine" in drawn.out
    assert (other.status, "used already" in other.err or "model" in other.err) != (0, False)


@pytest.mark.nightly
async def test_chat_without_a_model_server_uses_reader(tmp_path: Path) -> None:
    env = {**await archive(tmp_path), "SLEUTH_MODEL_URL": "http://127.0.0.1:9/v1"}

    async def said(message: str, *more: str) -> Any:
        done = await sleuth("ask", message, *more, "--json", **env)
        assert done.status == 0, done.err
        return done.json()

    assert (await said("Hello!"))["text"] == GREETING
    assert (await said("Hello!", *CHAT))["text"] == GREETING
    assert (await sleuth("runs", "list", "--json", **env)).json() == []
    assert (await said(QUESTION, *CHAT))["text"] == "Edric Gannow"
    born = await said("And where was he born?", *CHAT)
    assert (born["question"], born["text"]) == ("Where was Edric Gannow born?", "Brindlecote")
    assert born["cost"]["calls"] == 0
    assert (await said("Thank you!", *CHAT))["text"].startswith("You are welcome!")
    [run] = [run for run in (await sleuth("runs", "list", "--json", **env)).json() if not run["part_of"]]
    assert (run["question"], run["outcome"], run["answer"]) == (QUESTION, "answered", "Brindlecote")
