"""LangGraph's development server over the methods' graphs, used through its HTTP interface as Studio does."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from dev_server import Server, langgraph_dev

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.graphs.methods.par_rag.graph import Settings as ParRagSettings
from sleuth.graphs.registry import CHAT, METHODS, OTHERS, runnable
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.vllm

DOCUMENTS = {
    "dam.md": "# The Orrin dam\n\nThe Orrin dam was built in 1911 by the engineer Tessa Marl.\n",
    "marl.md": "# Tessa Marl\n\nTessa Marl was an engineer. She was born in Quayle and taught in Brenn.\n",
    "quayle.md": "# Quayle\n\nQuayle is a harbour town on the river Ister.\n",
}


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
        for name, field in method.settings.model_fields.items():
            assert (shown[name]["description"], shown[name]["default"]) == (field.description, field.default)
        assert shown["max_calls"]["default"] is None


@pytest.mark.nightly
def test_dev_run_without_thread_and_settings_ends(server: Server) -> None:
    state = server.post("/runs/wait", assistant_id="plain-rag", input={"question": "On which river is Quayle?"})
    assert state["verdict"]["status"] in ("answered", "unknown")


@pytest.mark.nightly
def test_dev_errors_are_shown_as_messages(server: Server) -> None:
    body, thread = {"assistant_id": "par-rag", "input": {"question": "Who?"}}, server.thread()
    failed = server.post(f"{thread}/runs/wait", **{**body, "input": {"question": " "}})
    assert failed["__error__"]["message"] == "The question is empty."
    highest = ParRagSettings.model_json_schema()["properties"]["coarse_k"]["maximum"]
    failed = server.post(f"{thread}/runs/wait", **body, context={"coarse_k": highest + 1})
    assert f"coarse_k: input should be less than or equal to {highest}" in failed["__error__"]["message"]


def test_dev_server_never_blocks_its_event_loop(server: Server, environment: dict[str, str]) -> None:
    """Last: everything above has run under the server's own detector of blocking calls."""
    log = server.log.read_text()
    assert "--allow-blocking" not in log  # the detector is on, or the server would warn that it is not
    assert "BlockingError" not in log
    assert "Blocking call" not in log
    assert not list((Path(environment["SLEUTH_HOME"]) / "locks").glob("*.json"))  # locked only while something runs
