import json
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest
from folders import ROOT
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_cli.config import get_unknown_keys, validate_config_file
from langgraph_cli.schemas import HttpConfig

from sleuth.graphs.core.context import Budget
from sleuth.graphs.registry import METHODS, OTHERS
from sleuth.studio.langgraph_dev import graphs as dev
from sleuth.tools.settings import TRACING_VARIABLES, tracing_variables

ALL = {**METHODS, **OTHERS}
CONFIG = ROOT / "langgraph.json"
STALE = "langgraph.json does not have the methods of the registry: run `python docs/hooks.py`"
GRAPHS = json.loads(CONFIG.read_text())["graphs"]
SERVED: dict[str, dev.DevGraph] = {
    name: getattr(dev, entry["path"].removeprefix("sleuth.studio.langgraph_dev.graphs:"))
    for name, entry in GRAPHS.items()
}


def test_graphs_serve_every_method_under_its_name() -> None:
    assert {name: graph.name for name, graph in SERVED.items()} == {name: name for name in ALL}, STALE
    assert {name: entry["description"] for name, entry in GRAPHS.items()} == {name: ALL[name].line for name in ALL}


def test_langgraph_json_is_generated_and_valid() -> None:
    spec = spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec and spec.loader
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    assert CONFIG.read_text(encoding="utf-8") == hooks.serve_graphs(), STALE
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    assert get_unknown_keys({key: value for key, value in config.items() if key != "$schema"}) == []
    assert config["http"].keys() <= HttpConfig.__annotations__.keys()
    assert validate_config_file(CONFIG)["python_version"] == "3.11"
    assert config["checkpointer"]["serde"] == {"pickle_fallback": False}


def test_langgraph_json_disables_tracing() -> None:
    environment = json.loads(CONFIG.read_text())["env"]
    assert set(TRACING_VARIABLES) <= environment.keys()
    assert tracing_variables(environment) == []
    assert environment["SLEUTH_TRACING"] == "off"
    assert environment["LANGSMITH_CONTROL_PLANE_API_KEY"] == "", "its default is LANGSMITH_API_KEY"


@pytest.mark.parametrize("name", ALL)
def test_graph_schema_shows_nodes_settings_and_budget(name: str) -> None:
    assert name in SERVED, STALE
    graph, kind = SERVED[name], ALL[name]
    assert graph.checkpointer is None  # the server has its own
    assert list(graph.get_graph().nodes) == ["__start__", *kind.nodes(), "__end__"]
    shown = graph.get_context_jsonschema()
    assert shown
    assert set(shown["properties"]) == {*kind.settings.model_fields, *Budget.__dataclass_fields__}
    assert all("description" in field for field in shown["properties"].values())


def served(name: str = "par-rag") -> dev.DevGraph:
    return SERVED[name].copy({"checkpointer": InMemorySaver()})


@pytest.mark.parametrize("given", [{}, {"question": None}, {"question": "  "}])
async def test_graph_empty_question_is_refused_before_opening(given: dict[str, Any]) -> None:
    with pytest.raises(dev.UserVisibleError, match="question is empty"):
        await served().ainvoke(given, {"configurable": {"thread_id": "1"}})


@pytest.mark.parametrize("given", [{}, {"messages": []}, {"messages": [{"role": "user", "content": " "}]}])
async def test_chat_graph_empty_message_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(dev.UserVisibleError, match="question is empty"):
        await served("chat").ainvoke(given, {"configurable": {"thread_id": "1"}})


async def test_graph_second_question_on_a_thread_is_refused() -> None:
    graph = served("plain-rag")
    config = await graph.aupdate_state({"configurable": {"thread_id": "1"}}, {"question": "Who?"}, as_node="__start__")
    with pytest.raises(dev.UserVisibleError, match="Start a new thread, or fork"):
        await graph.ainvoke({"question": "And when?"}, config)
