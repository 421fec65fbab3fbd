"""The reasoning graph is acyclic, has one source, and gives exactly the paths of sufficient nodes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import passage

from sleuth.graphs.evidence.citations import citation_at
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.methods.crp_rag.path_answers import (
    StepEvidence,
    Verification,
    find_contradictions,
    most_certain,
    step_result,
)
from sleuth.graphs.methods.crp_rag.reasoning_graph import (
    SOURCE,
    Node,
    Path,
    Proposal,
    add_layer,
    initial_graph,
    mark_final,
    merge_duplicates,
    open_sinks,
    path_steps,
    sufficient_paths,
)


def below(content: str, *prev: str, end: bool = False) -> Proposal:
    return Proposal(content=content, end=end, prev=list(prev))


layers = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "q", ""]), st.booleans(), st.lists(st.integers(0, 9))), max_size=6
    ),
    max_size=4,
)


def built(layers: Sequence[Sequence[tuple[str, bool, list[int]]]]) -> dict[str, Node]:
    """A graph of such layers; each step hangs below some of the open sinks."""
    nodes = initial_graph("q")
    for layer in layers:
        sinks = open_sinks(nodes)
        if not sinks:
            break
        chosen = [below(text, *(sinks[at % len(sinks)] for at in prev or [0]), end=end) for text, end, prev in layer]
        nodes = add_layer(nodes, merge_duplicates(chosen, across=True))
        nodes = mark_final(nodes, [sink for sink in sinks if not nodes[sink]["next"]])
    return mark_final(nodes, open_sinks(nodes))


@given(layers)
def test_graph_is_acyclic_with_one_source(
    layers: list[list[tuple[str, bool, list[int]]]],
) -> None:
    nodes = built(layers)
    assert [key for key, node in nodes.items() if not node["prev"]] == [SOURCE]
    assert [key for key, node in nodes.items() if node["start"]] == [SOURCE]
    for key, node in nodes.items():
        assert all(int(after) > int(key) and key in nodes[after]["prev"] for after in node["next"])
        assert node["end"] or node["next"]


@given(layers, st.sets(st.integers(1, 20)))
def test_sufficient_paths_are_complete(layers: list[list[tuple[str, bool, list[int]]]], chosen: set[int]) -> None:
    nodes, sufficient = built(layers), {str(key) for key in chosen}

    def every(path: Path) -> list[Path]:
        after = nodes[path[-1]]["next"]
        return [path] if not after else [found for key in after for found in every((*path, key))]

    assert sufficient_paths(nodes, sufficient) == [path for path in every((SOURCE,)) if set(path) <= sufficient]


def test_paths_of_the_lowest_perplexity_are_selected() -> None:
    measured = {"2": 1.9, "3": 1.2, "4": 1.1, "5": None}
    verified = {
        key: Verification(answer="x", perplexity=perplexity, sufficient=True) for key, perplexity in measured.items()
    }
    paths = [("1", "2", "4"), ("1", "3", "4"), ("1", "2", "5"), ("1", "6")]
    assert most_certain(paths, verified) == [("1", "6"), ("1", "3", "4"), ("1", "2", "4"), ("1", "2", "5")]


def test_question_is_answered_alone_only_without_steps() -> None:
    assert path_steps((SOURCE, "1", "2")) == ("1", "2")
    assert path_steps((SOURCE,)) == (SOURCE,)


def test_contradiction_names_the_first_path_of_each_result() -> None:
    nodes = add_layer(initial_graph("q"), [below(text, SOURCE) for text in "abc"])
    nodes = add_layer(nodes, [below("d", "2", "3", "4", end=True)])
    found = {"2": "Ostel", "3": "Ostel", "4": "Varn"}
    results = {(SOURCE, key, "5"): make_note("d", finding, []) for key, finding in found.items()}
    assert find_contradictions(nodes, results) == [
        "Paths contradict each other at step 5, 'd': 'Ostel' by path 1>2>5, 'Varn' by path 1>4>5"
    ]


YARD = passage("yard", "The yard dates from 1868. It was founded in 1868.")


@pytest.mark.parametrize(
    ("answer", "quoted", "cited"),
    [
        ("1868", ["dates from", "founded in 1868"], ["founded in 1868"]),
        ("1868", ["dates from"], ["The yard dates from 1868."]),
        ("1868", [], ["The yard dates from 1868."]),
        ("the same", ["dates from", "founded"], ["dates from", "founded"]),
        ("", ["founded in 1868"], []),
    ],
)
def test_result_of_a_step_cites_what_contains_it_first(answer: str, quoted: list[str], cited: list[str]) -> None:
    starts = [(YARD.text.index(quote), quote) for quote in quoted]
    citations = [citation_at(YARD, (at, at + len(quote))) for at, quote in starts]
    note = step_result("?", answer, [StepEvidence(citations=citations, passages=[YARD])])
    assert [citation["quote"] for citation in note["citations"]] == cited
