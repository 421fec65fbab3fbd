"""`sleuth report` from outside: the report on the terminal and in files, and an outline that waits for approval."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive
from cli_process import sleuth
from scripted_backend import Asked, Scripted, proxying

TEXT = "The Alder yard was founded in 1868."


def script(asked: Asked) -> Any:
    if asked.prompt == "planner/outline":
        return {"title": "The yard", "sections": [{"heading": "Founding", "question": "When was it founded?"}]}
    if asked.prompt == "answerer/section":
        return {"sentences": [{"text": TEXT, "sources": [1]}]}
    if asked.prompt == "evaluator/support":
        return "Yes"
    return {"answerable": True, "answer": "1868", "citations": [{"source": 1, "quote": "founded in 1868"}]}


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    async with proxying(Scripted(script)) as proxy:
        yield {**await archive(tmp_path, files={"alder.md": f"# Alder\n\n{TEXT}"}), "SLEUTH_MODEL_URL": proxy.url}


async def test_report_is_written_to_files(env: dict[str, str], tmp_path: Path) -> None:
    files = [tmp_path / f"yard.{suffix}" for suffix in ("md", "html", "docx")]
    outs = [part for file in files for part in ("--out", str(file))]
    done = await sleuth("report", "What is known about the yard?", "--method", "plain-rag", *outs, **env)
    assert done.status == 0, done.err
    assert "## Founding" in done.out
    assert f"{TEXT}[^1]" in files[0].read_text()
    assert files[2].read_bytes().startswith(b"PK")


async def test_outline_waits_for_a_reply(env: dict[str, str]) -> None:
    given = ("--method", "plain-rag", "--approve", "--thread", "yard")
    asked = await sleuth("report", "What is known about the yard?", *given, **env)
    assert "When was it founded?" in asked.out
    assert "sleuth ask REPLY --method report --thread yard" in asked.out
    done = await sleuth("ask", "approve", "--method", "report", "--thread", "yard", **env)
    assert TEXT in done.out
