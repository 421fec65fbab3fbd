"""What people see of a run."""

from io import StringIO

from rich.console import Console

from sleuth.graphs.answer import Entity, Graph, Relation
from sleuth.graphs.runs import Step
from sleuth.studio.view import graph_view, show_step

GRAPH = Graph(
    nodes=[Entity(id="oda", name="Oda"), Entity(id="varn", name="[bold] Varn")],
    edges=[Relation(subject="oda", predicate="born in", object="varn", passages=["a#1", "b#2"])],
)


def shown(console: Console) -> list[str]:
    return [line.rstrip() for line in console.export_text().splitlines()]


def recording() -> Console:
    return Console(record=True, width=100, file=StringIO())


def test_a_graph_is_a_line_for_each_relation() -> None:
    console = recording()
    console.print(graph_view(GRAPH))
    assert shown(console) == ["graph: 2 entities, 1 relations", "Oda – born in → [bold] Varn  [a#1, b#2]"]


def test_a_round_of_ras_says_what_it_looks_up_and_what_comes_of_it() -> None:
    console = recording()
    for node, update in (
        ("plan", {"rounds": {"1": {"query": "Where?", "passages": []}}}),
        ("retrieve", {"rounds": {"1": {"query": "Where?", "passages": ["x", "y"]}}, "facts": {}}),
        ("structure", {"facts": {"1": {}, "2": {}}}),
    ):
        show_step(Step(thread="t", node=node, state="finished", update=update), console)
    lines = [line for line in shown(console) if line.startswith("    ")]
    assert lines == ["    looks up: Where?", "    passages: 2", "    relations, new or in further passages: 2"]
