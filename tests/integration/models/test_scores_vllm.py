"""Scores from log-probabilities equal the server's: every score of RetroRAG, CRP-RAG's perplexity.

All that is guided is scripted, so that every kind of score is asked for; the scores come from the real model. Asked
again alone, it computes with other shapes of matrices: then the last digits differ.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fault_scenarios import CRP, RETRO, Trial
from four_hops import Shelf
from hashing_embedder import HashingEmbedder
from raw_server import chat, perplexity_of_words, probability_of_yes
from recording_proxy import Proxy, Upstream, proxying
from scripted_backend import Mixed, Scripted

from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Model, Reply, Request
from sleuth.agents.model_calls.logprobs import first_token_probability
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.vllm]

SCORES = {"evaluator/evidence", "evaluator/relevance", "evaluator/attribution", "evaluator/consistency"}


TO_THE_DIGIT, ASKED_AGAIN = 1e-6, 1e-4


@dataclass
class Listening:
    """A model that records requests and replies, before and after the client."""

    model: Model
    proxy: Proxy
    heard: list[tuple[Request, Reply]] = field(default_factory=list)

    @property
    def context_window(self) -> int:
        return self.model.context_window

    async def call(self, request: Request) -> Reply:
        reply = await self.model.call(request)
        self.heard.append((request, reply))
        return reply

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return await self.model.count_tokens(messages, role=role)

    def of(self, *prompts: str) -> list[tuple[Request, Reply, dict[str, Any]]]:
        """Requests with their replies, as ours and as they came from the server."""
        raw = {sent.call: json.loads(sent.reply)["choices"][0] for sent in self.proxy.calls}
        return [(request, reply, raw[request.call_id]) for request, reply in self.heard if request.prompt in prompts]


@asynccontextmanager
async def played(trial: Trial, home: Path, url: str) -> AsyncIterator[tuple[Listening, dict[str, Any]]]:
    """Run a question to its end; return the model's replies and the final state."""
    unguided = SCORES | {"verifier/verify"}
    backend = Mixed(real=Upstream(url), scripted=Scripted(trial.script), prompts=trial.prompts - unguided)
    async with proxying(backend) as proxy:
        settings = Settings(home=home, model_url=proxy.url, embedder="hashing", timeout=300)
        async with LLMClient.open(settings) as gateway, open_store(settings) as store:
            model = Listening(gateway, proxy)
            runs = RunService(store, Services(model=model, retriever=Shelf(), embedder=HashingEmbedder()))
            id = await runs.start(trial.question, trial.method, values=trial.values)
            await last_answer(runs.run(id))
            thread = await store.threads.get(id)
            yield model, (await runs.graph(thread).aget_state(runs.config(thread))).values


@pytest.mark.nightly
async def test_every_score_of_retro_rag_is_the_server_s(tmp_path: Path, vllm_url: str) -> None:
    two_rounds = {"max_iterations": 2, "max_sources": 6, "max_inferences": 6, "top_k": 2, "threshold": 1}
    async with played(replace(RETRO, values=two_rounds), tmp_path, vllm_url) as (model, state):
        said: dict[str, set[float]] = {prompt: set() for prompt in SCORES}
        for request, reply, raw in model.of(*SCORES):
            score, warning = first_token_probability(reply)
            assert score == pytest.approx(probability_of_yes(raw), abs=TO_THE_DIGIT)
            again = await chat(vllm_url, request.messages, max_tokens=1, logprobs=True, top_logprobs=20)
            assert score == pytest.approx(probability_of_yes(again), abs=ASKED_AGAIN)
            assert warning is None
            said[request.prompt].add(score)
        assert all(said.values()), "every kind of score was asked for"
        assert {piece["score"] for piece in state["sources"].values()} <= said["evaluator/evidence"]
        agreed = {attempt["consistency"] for attempt in state["attempts"].values()} - {None}
        assert agreed == said["evaluator/consistency"]


@pytest.mark.nightly
async def test_the_perplexity_of_every_step_is_the_server_s(tmp_path: Path, vllm_url: str) -> None:
    async with played(replace(CRP, values={"samples": 3, "top_k": 2, "shortcut": False}), tmp_path, vllm_url) as (
        model,
        state,
    ):
        asked = model.of("verifier/verify")
        assert len(asked) == len(state["verified"]) > 1
        for request, reply, raw in asked:
            (key,) = (key for key, node in state["nodes"].items() if node["content"] == request.input["question"])
            found = state["verified"][key]["perplexity"]
            assert found == pytest.approx(perplexity_of_words(raw), abs=TO_THE_DIGIT)
            sampled = {"seed": request.sampling.seed, "temperature": request.sampling.temperature}
            options = {"max_tokens": request.sampling.max_tokens, "logprobs": True, "top_logprobs": 1}
            again = await chat(vllm_url, request.messages, **sampled, **options)
            assert again["message"]["content"] == raw["message"]["content"] == reply["text"]
            assert found == pytest.approx(perplexity_of_words(again), rel=ASKED_AGAIN)
