"""The runs that are killed elsewhere go through all that their method can do: else kills would prove little."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from fault_scenarios import AGENT, AUTO, CALLED, CRP, IRCOT, PAR, RAS, RETRO, SENTENCES, UNKNOWN, Trial
from hashing_embedder import HashingEmbedder
from recording_proxy import Proxy, proxying
from run_child import BEFORE, Own
from scripted_backend import Scripted

from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.studio.client.sleuth import last_answer
from sleuth.tools.collection.collection import Collection
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"

Play = Callable[[Trial], Awaitable[dict[str, Any]]]


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trials") / "home"
    report = await ingest([CORPUS], settings=Settings(home=folder, embedder="hashing"), embedder=HashingEmbedder())
    assert report.failed == 0
    return folder


@pytest.fixture
async def play(home: Path) -> AsyncIterator[Play]:
    """Runs a trial; the state in which it ends."""
    async with AsyncExitStack() as stack:

        async def played(trial: Trial) -> dict[str, Any]:
            proxy: Proxy = await stack.enter_async_context(proxying(Scripted(trial.script)))
            settings = Settings(home=home, embedder="hashing", model_url=proxy.url)
            model = await stack.enter_async_context(LLMClient.open(settings))
            store = await stack.enter_async_context(open_store(settings))
            library = await stack.enter_async_context(await Collection.open(settings, embedder=HashingEmbedder()))
            for question, id in [*([(trial.before, BEFORE)] if trial.before else []), (trial.question, trial.method)]:
                triples = Own(library.triples(model="scripted"), id)
                services = Services(model=model, retriever=library, embedder=library.embedder, triples=triples)
                runs = RunService(store, services)
                await runs.start(question, trial.method, values=trial.values, thread=id)
                assert (await last_answer(runs.run(id))).status == "answered"
            thread = await store.threads.get(id)
            state: dict[str, Any] = (await runs.graph(thread).aget_state(runs.config(thread))).values
            assert sum(call["repair"] for call in state["calls"].values()) >= 1
            return state

        yield played


async def test_par_rag_rephrases_reopens_and_revises(play: Play) -> None:
    state = await play(PAR)
    assert state["returns"] == 1
    assert sum(state["requeries"].values()) > 0
    assert len(state["plan"]) == 5


async def test_crp_rag_merges_rejects_and_contradicts_steps(play: Play) -> None:
    """Samples are drawn in parallel, so any of them may become the first node of a layer."""
    state = await play(CRP)
    nodes = state["nodes"]
    assert [sorted(node["prev"]) for node in nodes.values()] == [[], ["1"], ["1"], ["2", "3"], ["2", "3"]]
    unsure = {nodes[key]["content"] for key, checked in state["verified"].items() if not checked["sufficient"]}
    assert unsure == UNKNOWN
    assert sum(call["role"] == "fuser" for call in state["calls"].values()) == 1
    assert any(warning.startswith("Paths contradict each other at step ") for warning in state["warnings"])


async def test_retro_rag_removes_evidence_in_each_round(play: Play) -> None:
    state = await play(RETRO)
    consistent = [attempt["consistency"] for attempt in state["attempts"].values()]
    assert consistent == [None, pytest.approx(0.3), pytest.approx(0.9)]
    left = {(departure["round"], "inference" in key) for key, departure in state["departures"].items()}
    assert left == {(2, False), (2, True), (3, False), (3, True)}


async def test_ras_extracts_only_unread_passages(play: Play) -> None:
    state = await play(RAS)
    passages = [len(round["passages"]) for round in state["rounds"].values()]
    read = sum(call["role"] == "extractor" and not call["repair"] for call in state["calls"].values())
    distinct = {reference for round in state["rounds"].values() for reference in round["passages"]}
    assert passages == [3, 3, 3]
    assert 0 < read < len(distinct), "some were read before, some were not"
    assert {fact["round"] for fact in state["facts"].values()} == {"1", "2", "3"}


async def test_auto_continues_after_a_rejected_answer(play: Play) -> None:
    state = await play(AUTO)
    first, second = state["hops"].values()
    assert (first["method"], first["confidence"]) == ("plain-rag", pytest.approx(0.2))
    assert (second["method"], second["status"], second["confidence"]) == ("par-rag", "answered", None)
    assert {call["node"].split("/")[0] for call in state["calls"].values()} == {
        *("plain-rag", "verify", "plan", "par-rag")
    }


async def test_ircot_collects_passages_with_every_sentence(play: Play) -> None:
    state = await play(IRCOT)
    assert state["thoughts"] == [*SENTENCES]
    assert len(state["evidence"]) > 4


async def test_agent_calls_its_tool_and_is_warned_of_repetition(play: Play) -> None:
    state = await play(AGENT)
    assert [round["query"] for round in state["rounds"].values()] == [*CALLED]
    assert any("searched again" in warning for warning in state["warnings"])
