"""Hostile documents, file names and replies: nothing that a command prints controls the terminal."""

import asyncio
import re
from pathlib import Path

import pytest
from chat_scene import SAID, archive
from cli_process import Done, sleuth
from scripted_backend import Asked, Scripted, proxying

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u2066\u200f\u061c"
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)")
"""Colors and progress bars, which the commands print on a terminal."""
TERMINAL = {"FORCE_COLOR": "1", "COLUMNS": "80"}
QUESTION = f"Who built{HOSTILE} the Pellowrig Light?"


def hostile(asked: Asked) -> object:
    read = SAID["reader/read"]
    return {**read, "answer": f"Edric{HOSTILE} Gannow"} if asked.prompt == "reader/read" else SAID[asked.prompt]


def assert_harmless(done: Done) -> None:
    shown = OWN.sub("", done.out + done.err)
    assert shown
    assert not {character for character in shown if not character.isprintable()} - {"\n", "\t"}, done


@pytest.mark.nightly
async def test_commands_print_hostile_text_without_control_characters(tmp_path: Path) -> None:
    env = {**await archive(tmp_path), **TERMINAL}
    name, empty = f"note{HOSTILE}.md", f"empty{HOSTILE}.md"
    text = f"# The Kelp{HOSTILE} Fair\n\nThe Kelp{HOSTILE} Fair is held in May. {'It is a fair of the sea. ' * 60}\n"
    folder = tmp_path / "folder"
    await asyncio.to_thread(folder.mkdir)
    for file, content in ((name, text), (empty, ""), (f"other{HOSTILE}.xyz", "x")):
        await asyncio.to_thread((folder / file).write_text, content)
    ingested = await sleuth("ingest", str(folder), **env)
    assert ingested.status == 0, ingested
    (id_,) = [each["id"] for each in (await sleuth("docs", "list", "--json", **env)).json() if "note" in each["id"]]
    async with proxying(Scripted(hostile)) as proxy:
        env["SLEUTH_MODEL_URL"] = proxy.url
        asked = await sleuth("ask", QUESTION, "--method", "plain-rag", "--thread", "t", **env)
        again = await sleuth("ask", QUESTION, "--method", "plain-rag", "--thread", "t", **env)
    assert "Edric" in asked.out
    assert again.status == 1
    shown = [
        ("docs", "list"),
        ("docs", "show", id_),
        ("docs", "show", f"no{HOSTILE}"),
        ("search", "Kelp Fair", "--mode", "graph", "--explain"),
        ("runs", "list"),
        ("runs", "show", "t"),
        ("runs", "history", "t"),
        ("runs", "export", "t"),
        ("resume", "t"),
        ("ingest", str(folder / empty)),
        ("ingest", str(tmp_path / f"gone{HOSTILE}.md")),
        ("runs", "show", f"no{HOSTILE}"),
        ("ask", QUESTION, "--method", f"no{HOSTILE}"),
    ]
    with_json = [(*command, "--json") for command in shown[:6] if "no" not in command[-1][:2]]
    for command in (*shown, *with_json):
        assert_harmless(await sleuth(*command, **env))
        assert_harmless(await sleuth(*command, **{**env, "FORCE_COLOR": ""}))
    for done in (ingested, asked, again):
        assert_harmless(done)
