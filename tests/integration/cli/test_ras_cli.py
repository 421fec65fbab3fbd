"""RAS from outside: its graph is shown, passages are read once by all runs, and what was read goes with a document."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import archive
from cli_process import sleuth
from recording_proxy import proxying
from scripted_backend import Asked, Scripted

BY_WORDS = ("--method", "ras", "--set", "mode=keyword")
BORN = {"subject": "Oda Brell", "predicate": "born in", "object": "Varn"}


def script(asked: Asked) -> Any:
    """Read one fact in the passage that has it, and answer from it."""
    match asked.prompt:
        case "planner/begin":
            return "[SUBQ]"
        case "extractor/extract":
            return {"triples": [BORN] if "born in Varn" in asked.text else []}
        case "planner/next_with_finding":
            return {"finding": "Varn", "facts": [1], "plan": "[SUFFICIENT]"}
    return {"facts": [1], "answer": "Varn", "known": True}


TEXTS = {
    "oda.md": "# Oda Brell\n\nOda Brell was a painter. She was born in Varn.",
    "varn.md": "# Varn\n\nVarn lies low.",
}


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Return the environment of a working command, with two small documents."""
    async with proxying(Scripted(script)) as proxy:
        yield {**await archive(tmp_path, files=TEXTS), "SLEUTH_MODEL_URL": proxy.url, "COLUMNS": "120"}


async def test_ras_shows_the_graph_and_extracts_passages_once(env: dict[str, str]) -> None:
    question = "Where was Oda Brell, who knew Varn, born?"
    first = await sleuth("ask", question, *BY_WORDS, "--thread", "first", "--json", **env)
    assert first.status == 0, first.err
    answer = first.json()
    passage = answer["citations"][0]["passage"]
    assert [citation["quote"] for citation in answer["citations"]] == ["She was born in Varn."]
    assert answer["graph"] == {
        "nodes": [{"id": "oda brell", "name": "Oda Brell"}, {"id": "varn", "name": "Varn"}],
        "edges": [{"subject": "oda brell", "predicate": "born in", "object": "varn", "passages": [passage]}],
    }
    assert answer["cost"]["nodes"]["structure"]["calls"] == 2
    shown = await sleuth("runs", "show", "first", **env)
    assert f"Oda Brell – born in → Varn  [{passage}]" in shown.out

    second = (await sleuth("ask", question, *BY_WORDS, "--json", **env)).json()
    assert (second["text"], second["graph"]) == (answer["text"], answer["graph"])
    assert "structure" not in second["cost"]["nodes"]

    assert (await sleuth("docs", "delete", "oda.md", **env)).status == 0
    third = (await sleuth("ask", question, *BY_WORDS, "--json", **env)).json()
    assert "graph" not in third
    assert (await sleuth("runs", "show", "first", "--json", **env)).json() == answer
