"""LangGraph's development server over the methods' graphs, used through its HTTP interface as Studio does."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dev_server import Server, langgraph_dev

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.methods.par_rag.graph import Settings as ParRagSettings
from sleuth.graphs.methods.par_rag.steps import Step
from sleuth.graphs.registry import CHAT, METHODS, OTHERS, runnable
from sleuth.tools.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.vllm]

DOCUMENTS = {
    "dam.md": "# The Orrin dam\n\nThe Orrin dam was built in 1911 by the engineer Tessa Marl.\n",
    "marl.md": "# Tessa Marl\n\nTessa Marl was an engineer. She was born in Quayle and taught in Brenn.\n",
    "quayle.md": "# Quayle\n\nQuayle is a harbour town on the river Ister.\n",
}
# One step without planning, one review and no replanning: a run that ends soon with any replies.
SHORT = {"plan": False, "coarse_k": 2, "fine_k": 2, "skip_supported": False, "max_requeries": 0, "max_returns": 0}


@pytest.fixture(scope="module")
def environment(vllm_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a store that holds a few documents."""
    folder = tmp_path_factory.mktemp("studio")
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    report = asyncio.run(ingest([folder], settings=Settings(home=folder / "home")))
    assert report.added == len(DOCUMENTS)
    return {"SLEUTH_HOME": str(folder / "home"), "SLEUTH_MODEL_URL": vllm_url}


@pytest.fixture(scope="module")
def server(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with langgraph_dev(tmp_path_factory.mktemp("server"), **environment) as running:
        yield running


def ended(state: dict[str, Any]) -> bool:
    assert "verdict" in state, state
    return state["verdict"]["status"] in ("answered", "unknown")


def visited(history: list[dict[str, Any]]) -> set[str]:
    return {node for state in history for node in state["next"]} - {"__start__"}


def before(history: list[dict[str, Any]], node: str) -> dict[str, Any]:
    """Return the earliest checkpoint of a thread before this node."""
    return next(state for state in reversed(history) if state["next"] == [node])


def test_dev_server_shows_methods_with_nodes_and_settings(server: Server) -> None:
    assistants = server.post("/assistants/search", limit=100)
    assert {assistant["graph_id"] for assistant in assistants} == {*METHODS, *OTHERS}
    for assistant in assistants:
        method, path = runnable(assistant["graph_id"]), f"/assistants/{assistant['assistant_id']}"
        nodes = [node["id"] for node in server.get(f"{path}/graph")["nodes"]]
        assert nodes == ["__start__", *method.nodes(), "__end__"]
        schemas = server.get(f"{path}/schemas")
        assert schemas["input_schema"]["required"] == ["messages" if method is CHAT else "question"]
        shown = schemas["context_schema"]["properties"]
        for name, description in method.settings.descriptions().items():
            assert shown[name]["description"] == description
            assert shown[name]["default"] == method.settings.model_fields[name].default
        assert shown["max_calls"]["default"] is None


@pytest.mark.nightly
def test_dev_run_visits_the_nodes_and_is_forked(server: Server) -> None:
    thread, question = server.thread(), "Where was the engineer of the Orrin dam born?"
    body = {"assistant_id": "par-rag", "context": SHORT}
    first = server.post(f"{thread}/runs/wait", input={"question": question}, **body)
    assert ended(first)
    assert [step["question"] for step in first["plan"].values()] == [question]
    history = server.history(thread)
    assert visited(history) == set(METHODS["par-rag"].nodes()) - {"refine", "check_evidence"}
    drafting = before(history, "draft")["values"]
    assert list(drafting["coarse"]) == ["1"]
    assert len(drafting["coarse"]["1"]) == SHORT["coarse_k"]
    assert drafting["drafts"] == drafting["fine"] == drafting["notes"] == {}

    ending = before(history, "answer")["checkpoint"]
    reopened = {"notes": {"1": None}, "wave": ["1"]}
    server.post(f"{thread}/state", checkpoint=ending, values=reopened, as_node="review")
    state = server.get(f"{thread}/state")
    assert (state["values"]["notes"], state["next"]) == ({}, ["retrieve_coarse"])

    steps = [("Who built the Orrin dam?", []), ("Where was that engineer born?", ["1"])]
    plan = {
        str(at): Step(thought="", planned=asked, question=asked, action="Retrieve", needs=needs)
        for at, (asked, needs) in enumerate(steps, 1)
    }
    start = before(history, "retrieve_coarse")["checkpoint"]
    made = server.post(f"{thread}/state", checkpoint=start, values={"plan": plan, "wave": ["1"]}, as_node="plan")
    assert server.get(f"{thread}/state")["next"] == ["retrieve_coarse"]
    second = server.post(f"{thread}/runs/wait", input=None, checkpoint=made["checkpoint"], **body)
    assert ended(second)
    assert list(second["notes"]) == ["1", "2"]
    assert [step["planned"] for step in second["plan"].values()] == [asked for asked, _ in steps]
    assert len(second["calls"]) > len(first["calls"])
    both = server.history(thread)
    assert visited(both) == set(METHODS["par-rag"].nodes()) - {"check_evidence"}
    assert both[-len(history) :] == history


@pytest.mark.nightly
def test_dev_run_without_thread_and_settings(server: Server) -> None:
    given = {"question": "On which river is Quayle?"}
    assert ended(server.post("/runs/wait", assistant_id="plain-rag", input=given))


@pytest.mark.nightly
def test_dev_run_stops_at_its_budget(server: Server) -> None:
    given = {"question": "On which river is Quayle?"}
    state = server.post("/runs/wait", assistant_id="par-rag", input=given, context={**SHORT, "max_calls": 1})
    assert state["verdict"]["status"] == "out_of_budget"
    assert len(state["calls"]) == 1


@pytest.mark.nightly
def test_dev_errors_are_shown_as_messages(server: Server) -> None:
    body, thread = {"assistant_id": "par-rag", "input": {"question": "Who?"}}, server.thread()
    failed = server.post(f"{thread}/runs/wait", **{**body, "input": {"question": " "}})
    assert failed["__error__"]["message"] == "The question is empty."
    highest = ParRagSettings.model_json_schema()["properties"]["coarse_k"]["maximum"]
    failed = server.post(f"{thread}/runs/wait", **body, context={"coarse_k": highest + 1})
    assert f"coarse_k: input should be less than or equal to {highest}" in failed["__error__"]["message"]


@pytest.mark.nightly
def test_dev_threads_survive_a_restart(environment: dict[str, str], tmp_path: Path) -> None:
    with langgraph_dev(tmp_path, **environment) as server:
        thread = server.thread()
        body = {"assistant_id": "plain-rag", "context": {"mode": "keyword"}}
        done = server.post(f"{thread}/runs/wait", input={"question": "On which river is Quayle?"}, **body)
        assert ended(done)
        history = server.history(thread)
    with langgraph_dev(tmp_path, **environment) as server:
        assert server.history(thread) == history
        failed = server.post(f"{thread}/runs/wait", input={"question": "And which sea?"}, **body)
        assert "Start a new thread" in failed["__error__"]["message"]
        start = before(history, "answer")["checkpoint"]
        made = server.post(f"{thread}/state", checkpoint=start, values={}, as_node="retrieve")
        again = server.post(f"{thread}/runs/wait", input=None, checkpoint=made["checkpoint"], **body)
        assert again["evidence"] == done["evidence"]
        assert ended(again)


def test_dev_server_never_blocks_its_event_loop(server: Server, environment: dict[str, str]) -> None:
    """Last: everything above has run under the server's own detector of blocking calls."""
    log = server.log.read_text()
    assert "--allow-blocking" not in log  # the detector is on, or the server would warn that it is not
    assert "BlockingError" not in log
    assert "Blocking call" not in log
    assert not list((Path(environment["SLEUTH_HOME"]) / "locks").glob("*.json"))  # locked only while something runs
