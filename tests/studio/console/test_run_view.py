"""What people see of a run."""

from io import StringIO

from rich.console import Console

from sleuth.graphs.core.answer import Answer, Citation, Entity, Graph, Relation, total_cost
from sleuth.graphs.core.events import Step
from sleuth.studio.console.run_view import answer_view, graph_view, show_step

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
        show_step(Step(thread="t", method="ras", node=node, state="finished", update=update), console)
    lines = [line for line in shown(console) if line.startswith("    ")]
    assert lines == ["    looks up: Where?", "    passages: 2", "    relations, new or in further passages: 2"]


def test_the_sources_of_the_hybrid_system_say_what_they_have_given() -> None:
    console = recording()
    for node, update in (
        ("classify", {"attributes": {"domain": "music", "dynamic": False}}),
        ("retrieve", {"texts": ["x"], "tables": [], "warnings": ["The search is missing: down", "else"]}),
        ("calculate", {"calculations": [{"title": "1 + 1", "text": "1 + 1 = 2"}]}),
        ("recall", {"recollection": {"title": "", "text": "[bold] Varn"}}),
    ):
        show_step(Step(thread="t", method="hybrid-rag", node=node, state="finished", update=update), console)
    lines = [line.strip() for line in shown(console) if line.startswith("    ")]
    missing = "! The search is missing: down"
    assert lines == ["music, static", "texts: 1", missing, "worked out: 1 + 1 = 2", "recalled: [bold] Varn"]


def test_what_is_cited_beside_documents_says_what_it_is() -> None:
    nowhere = Citation(passage="", document="", title="1 + 1", quote="1 + 1 = 2", start=0, end=9)
    cell = Citation(passage="p", document="d", title="T", quote="2", start=4, end=5, kind="table", reference="row 1")
    cost = total_cost({})
    citations = [Citation(**{**nowhere, "kind": "expression", "reference": "1 + 1"}), cell]
    answer = Answer(
        thread="t",
        checkpoint="c",
        method="m",
        question="?",
        status="answered",
        text="2",
        citations=citations,
        cost=cost,
    )
    console = recording()
    console.print(answer_view(answer))
    lines = [line.strip() for line in shown(console)]
    assert "worked out: 1 + 1" in lines
    assert "T (row 1, d, characters 4–5)" in lines
