"""ARCHITECTURE.md shows every graph as it is."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from sleuth.graphs.diagrams import graphs, mermaid, redraw

DOCUMENT = Path(__file__).parents[1] / "ARCHITECTURE.md"


def test_every_graph_is_drawn_as_it_is() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert redraw(text) == text, "out of date: run `python -m sleuth.graphs.diagrams`"
    assert sorted(re.findall(r"<!-- graph:(.+) -->", text)) == sorted(graphs())


@pytest.mark.parametrize("name", graphs())
def test_a_picture_has_every_node(name: str) -> None:
    assert set(re.findall(r"\w+", mermaid(graphs()[name]))) >= graphs()[name].nodes.keys()


class State(TypedDict):
    text: str


async def first(state: State) -> None: ...


async def second(state: State) -> None: ...


def either(state: State) -> list[Literal["second", "__end__"]]:
    raise NotImplementedError


def test_lines_and_dots() -> None:
    graph: StateGraph[State, Any, State, State] = StateGraph(State)
    graph.add_node(first)
    graph.add_node(second)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", either)
    graph.add_edge("second", END)
    drawn = ["START([start]) --> first", "first -.-> second", "first -.-> END([end])", "second --> END([end])"]
    assert mermaid(graph).splitlines() == ["flowchart TD", *(f"    {line}" for line in drawn)]
    text = "a\n<!-- graph:plain-rag -->\nold\n<!-- /graph -->\nb"
    assert "old" not in redraw(text) and redraw(text).startswith(
        "a\n<!-- graph:plain-rag -->\n```mermaid\nflowchart TD\n"
    )
    assert redraw(redraw(text)) == redraw(text)
