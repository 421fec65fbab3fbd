"""A tiny graph model behind a real vLLM server gives the same replies as without one."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from process import answers, free_port, running
from tiny_model import examples, of_town, write_tiny_model

from sleuth.agents.graph_encoder import ModelWithGraph
from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Request, Sampling
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS
from sleuth.studio.model_server.adapter import merge
from sleuth.studio.model_server.flags import ServeOptions, serve_command, serve_environment
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings
from training.graph_llm import tune
from training.graph_llm_compare import Replies
from training.roles.tuning.batches import Plan

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.nightly,  # starts a server of its own
    pytest.mark.usefixtures("vllm_installed"),
]

EMBEDDER = HashingEmbedder(dimension=32)
PLAN = Plan(rank=8, tokens=3000, batches_per_step=1, warm_up=2, rate=0.004, epochs=3)
WIDE = {"hidden_size": 64, "num_attention_heads": 2}
"""vLLM's kernels for processors take no heads of 16 numbers."""


@dataclass(frozen=True)
class Scene:
    base: Path
    graph: Path
    url: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    pytest.importorskip("torch_geometric", reason="the extra graph is not installed")
    folder = tmp_path_factory.mktemp("graph")
    base, graph = write_tiny_model(folder / "base", **WIDE), folder / "graph"
    (folder / "examples.jsonl").write_text("\n".join(map(json.dumps, examples(60))))
    tune(folder / "examples.jsonl", base, graph, PLAN, embedder=EMBEDDER)
    options = ServeOptions(port=free_port(), dtype="float32", threads=1, max_model_len=2048, adapter=str(graph))
    command = serve_command(options, merged(base, graph, folder / "merged"))
    url, environment = f"http://127.0.0.1:{options.port}", os.environ | serve_environment(options)
    with running(command, folder / "server.log", is_up=partial(answers, f"{url}/health"), environment=environment):
        yield Scene(base, graph, f"{url}/v1")


def merged(base: Path, adapter: Path, folder: Path) -> Path:
    """The checkpoint that a server is given."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    merge(model.state_dict(), adapter)
    model.save_pretrained(folder)
    return folder


def asked(messages: tuple[Message, ...], **options: Any) -> Request:
    return Request(
        call_id="c", role="answerer", prompt=ANSWER_FROM_FACTS.prompt, messages=messages, input={}, **options
    )


def whole(text: str) -> str:
    """Without the bytes at its end that make no character yet, which the server holds back, and without NUL, which
    the client removes: PostgreSQL stores none.
    """
    return text.rstrip("\ufffd").replace("\0", "")


async def test_served_replies_equal_direct_replies(scene: Scene, tmp_path: Path) -> None:
    replies = Replies(scene.base, scene.graph, EMBEDDER, exact=True)
    short = Sampling(max_tokens=24)
    said, expected, plain = [], [], []
    async with LLMClient.open(Settings(model_url=scene.url, home=tmp_path, timeout=3600)) as model:
        told = ModelWithGraph(model, str(scene.graph), EMBEDDER)
        for town in ("Varn", "Isk"):
            said.append((await told.call(asked(of_town(town), sampling=short)))["text"])
            plain.append((await model.call(asked(of_town(town), sampling=short)))["text"])
            expected.append(replies.say(of_town(town), tokens=24))
            expected.append(replies.say(of_town(town), tokens=24, encode=False))
    found = [text for pair in zip(said, plain, strict=True) for text in pair]
    assert list(map(whole, found)) == list(map(whole, expected))
    assert said != plain


async def test_a_token_of_another_model_is_refused_with_a_way_out(scene: Scene, tmp_path: Path) -> None:
    import base64
    import io

    import torch

    file = io.BytesIO()
    torch.save(torch.zeros(1, 32), file)
    alien = replace(asked(of_town("Varn")), soft_token=base64.b64encode(file.getvalue()).decode())
    async with LLMClient.open(Settings(model_url=scene.url, home=tmp_path, timeout=3600)) as model:
        with pytest.raises(ModelError, match=r"hidden_size 32 .* 64.* Serve the language model that it was tuned with"):
            await model.call(alien)
