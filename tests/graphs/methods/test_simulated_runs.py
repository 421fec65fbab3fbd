"""Runs of all methods with simulated models."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from langgraph.checkpoint.memory import InMemorySaver
from scenes import without_checkpoints

from sleuth.graphs.core.context import Context
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.search.retriever import Query
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Hit, Passage
from training.simulation import Gold, SimulatedModel, Simulation, gold_of
from training.simulation.wording import mentions

EXAMPLES = Path(__file__).parents[3] / "examples"
ARTICLES = {path.name: path.read_text(encoding="utf-8") for path in sorted((EXAMPLES / "corpus").glob("*.md"))}
WORDS = {name: frozenset(text.lower().split()) for name, text in ARTICLES.items()}
ROWS = {row["id"]: row for row in map(json.loads, (EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines())}


def with_sweep(first: str, *others: str) -> list[Any]:
    """Questions for every method: the first as a unit test, the others in the sweeps."""
    return [first, *(pytest.param(id, marks=pytest.mark.sweep) for id in others)]


CHAINS = with_sweep("q16", "q06", "q08", "q10", "q27")
WITHOUT_ANSWER = with_sweep("q33", "q35", "q37", "q38")


def gold(id: str) -> Gold:
    return gold_of(ROWS[id], {name: (title_of(text), text) for name, text in ARTICLES.items()})


def article(name: str) -> Passage:
    text = ARTICLES[name]
    return Passage(id=name, document_id=name, title=title_of(text), text=text, start=0, end=len(text))


def title_of(text: str) -> str:
    return text.splitlines()[0].lstrip("# ")


class Words:
    """A retriever that counts shared words."""

    async def search(self, query: Query) -> list[Hit]:
        wanted = set(query.text.lower().replace("?", "").split())
        best = sorted(WORDS, key=lambda name: (-len(wanted & WORDS[name]), name))[: query.k]
        return [Hit(passage=article(name), score=1 / rank, rank=rank) for rank, name in enumerate(best, start=1)]


async def ended(
    name: str,
    asked: Gold,
    values: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    context = Context(
        model=SimulatedModel(asked, Simulation(rates={})),
        retriever=Words(),
        archive=MemoryArchive(),
        settings=METHODS[name].settings(**values or {}),
        embedder=HashingEmbedder(),
    )
    context = replace(context, subruns=CheckpointerSubruns(saver=InMemorySaver(), context=context))
    state = await without_checkpoints(METHODS[name].graph).ainvoke({"question": asked.question}, context=context)
    verdict: Mapping[str, Any] = state["verdict"]
    return verdict


def is_right(asked: Gold, text: str) -> bool:
    return any(mentions(text, known) for known in (asked.answer, *asked.aliases))


SIMULATED = [name for name, method in METHODS.items() if method.needs_model]
SEARCHING = [name for name in SIMULATED if name != "closed-book"]


@pytest.mark.parametrize("name", SEARCHING)
async def test_simulated_method_answers_one_hop(name: str) -> None:
    verdict = await ended(name, gold("q06"))
    assert (verdict["status"], verdict["text"]) == ("answered", "14 weeks")
    assert "quarve-blue.md" in {citation["passage"] for citation in verdict["citations"]}


MULTI_HOP = ("par-rag", "retro-rag", "ras", "self-ask", "ircot", "agent", "search-trained")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, {}) for name in MULTI_HOP),
        ("agent", {"tools": "three"}),
        ("search-trained", {"format": "stepsearch"}),
        ("search-trained", {"format": "corag"}),
    ],
)
@pytest.mark.parametrize("id", CHAINS)
async def test_simulated_multi_hop_methods_answer_chains(name: str, values: dict[str, Any], id: str) -> None:
    verdict = await ended(name, gold(id), values=values)
    assert verdict["status"] == "answered"
    assert is_right(gold(id), verdict["text"])


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("id", WITHOUT_ANSWER)
async def test_simulated_unanswerable_question_is_not_answered(name: str, id: str) -> None:
    assert (await ended(name, gold(id)))["status"] in ("refused", "unknown", "invalid_question")
