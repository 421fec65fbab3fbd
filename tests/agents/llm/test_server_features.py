"""Probes of servers whose models think."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from sleuth.agents.llm.completions import Completion
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.llm.server_features import Capabilities, detect_capabilities

READY = '{"ready": true}'


class Probed:
    """A server that follows schemas after `thoughts` tokens of thoughts, and counts its probes."""

    url = "http://127.0.0.1/v1"

    def __init__(self, kind: str, thoughts: int, *, schema: bool = True) -> None:
        self.kind, self.thoughts, self.schema, self.probes = kind, thoughts, schema, 0

    async def probe(self, model: str, max_tokens: int = 24, **options: Any) -> Completion:
        self.probes += 1
        text = READY if "response_format" in options and self.schema else "Hello."
        if max_tokens < self.thoughts:
            begun = {"prefilled": {"content": "Well, well"}, "parsed": {"content": None, "reasoning_content": "Well"}}
            return self.chosen(begun.get(self.kind, {"content": "<think>Well"}), "length")
        whole = {
            "prefilled": {"content": f"Well.</think>{text}"},
            "parsed": {"content": text, "reasoning_content": "Well."},
            "misfit": {"content": None, "reasoning": text},
            "plain": {"content": text},
        }
        return self.chosen(whole.get(self.kind, {"content": f"<think>Well.</think>\n{text}"}), "stop")

    def chosen(self, message: dict[str, Any], finish: str) -> Completion:
        completion = Completion()
        completion.add({"choices": [{"message": message, "finish_reason": finish}]})
        return completion

    async def count_tokens(self, model: str, messages: object) -> None:
        return None


async def capabilities(server: Probed, file: Path) -> Capabilities:
    return await detect_capabilities(cast(Endpoint, server), "tiny", file)


@pytest.mark.parametrize(
    ("kind", "thoughts", "thinks"),
    [("plain", 0, False), ("misfit", 0, False), *((kind, 700, True) for kind in ("tags", "prefilled", "parsed"))],
)
async def test_model_that_thinks_is_probed_with_room_for_thoughts(
    kind: str, thoughts: int, *, thinks: bool, tmp_path: Path
) -> None:
    server = Probed(kind, thoughts)
    can = await capabilities(server, tmp_path / "capabilities.json")
    assert ("schema" in can, "thinks" in can, server.probes) == (True, thinks, 7 if thinks else 4)
    await capabilities(server, tmp_path / "capabilities.json")
    assert server.probes == (7 if thinks else 4)


@pytest.mark.parametrize("thinks", [True, False])
async def test_server_without_schemas_is_probed_again_at_the_next_start(thinks: bool, tmp_path: Path) -> None:
    file = tmp_path / "capabilities.json"
    file.write_text(json.dumps({"http://127.0.0.1/v1 tiny": ["thinks"] * thinks}))
    assert "schema" not in await capabilities(Probed("plain", 0, schema=False), file)
    assert "schema" in await capabilities(Probed("parsed", 100), file)
    assert "schema" in json.loads(file.read_text())["http://127.0.0.1/v1 tiny"]


async def test_model_that_never_stops_is_no_thinker(tmp_path: Path) -> None:
    can = await capabilities(Probed("prefilled", 9_999), tmp_path / "capabilities.json")
    assert not can & {"schema", "thinks"}
