"""A conversation on the command line: `sleuth ask --method chat --thread ID`, again and again."""

import asyncio
from pathlib import Path
from typing import Any

from chat_scene import BACK, GREETING, archive, knowing
from cli_process import sleuth
from serve_scene import QUESTION

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
