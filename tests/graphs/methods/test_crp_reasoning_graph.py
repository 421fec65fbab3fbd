"""The reasoning graph is acyclic, has one source, and gives exactly the paths of sufficient nodes."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.graphs.methods.crp_rag.path_answers import Verification, most_certain
from sleuth.graphs.methods.crp_rag.reasoning_graph import (
    SOURCE,
    Node,
    Path,
    Proposal,
    add_layer,
    ancestors,
    group_rows,
    initial_graph,
    mark_final,
    merge_duplicates,
    merge_proposals,
    open_sinks,
    path_prefixes,
    path_steps,
    reached_bound,
    repeats_ancestor,
    shortest_and_longest,
    sufficient_paths,
)


def below(content: str, *prev: str, end: bool = False) -> Proposal:
    return Proposal(content=content, end=end, prev=list(prev))


def diamond() -> dict[str, Node]:
    """The question, two paths to one step, and a dead end: 1 > 2, 3 > 4; 3 > 5."""
    first = add_layer(initial_graph("q"), [below("a", SOURCE), below("b", SOURCE)])
    return add_layer(first, [below("c", "2", "3", end=True), below("d", "3", end=True)])


def test_add_layer_connects_both_layers() -> None:
    nodes = diamond()
    assert nodes["1"] == {"content": "q", "start": True, "end": False, "next": ["2", "3"], "prev": []}
    assert nodes["3"] == {"content": "b", "start": False, "end": False, "next": ["4", "5"], "prev": ["1"]}
    assert nodes["4"] == {"content": "c", "start": False, "end": True, "next": [], "prev": ["2", "3"]}
    assert open_sinks(nodes) == []
    assert ancestors(nodes, "4") == ["2", "3", "4"]
    assert ancestors(nodes, SOURCE) == []


@pytest.mark.parametrize(
    ("max_depth", "max_nodes", "names"),
    [(2, 4, ""), (1, 4, "max_depth"), (2, 3, "max_nodes"), (2, 5, "")],
)
def test_graph_grows_up_to_its_bounds(max_depth: int, max_nodes: int, names: str) -> None:
    """Two steps below the question may each get another."""
    nodes = add_layer(initial_graph("q"), [below("a", SOURCE), below("b", SOURCE)])
    assert reached_bound(nodes, 1, max_depth, max_nodes).partition(" ")[0] == names


def test_add_layer_does_not_change_its_input() -> None:
    before = initial_graph("q")
    assert open_sinks(before) == [SOURCE]
    add_layer(before, [below("a", SOURCE)])
    mark_final(before, [SOURCE])
    assert before == initial_graph("q")


def test_add_layer_refuses_edge_within_layer() -> None:
    with pytest.raises(AssertionError, match="earlier layer"):
        add_layer(initial_graph("q"), [below("a", SOURCE), below("b", "2")])


def test_repeats_ancestor_detects_equal_words() -> None:
    nodes = diamond()
    assert repeats_ancestor(nodes, below("  A ", "4"))
    assert not repeats_ancestor(nodes, below("d", "4"))
    assert not repeats_ancestor(nodes, below("q", "4"))  # the question itself may be the last step


def test_merge_duplicates_below_one_node_or_across() -> None:
    said = [below("Who?", "2", end=True), below("who? ", "3"), below("Who?", "2", end=True), below("When?", "2")]
    merged = [below("Who?", "2", "3"), below("When?", "2")]
    assert merge_duplicates(said, across=True) == merged
    assert merge_duplicates(said, across=False) == [
        below("Who?", "2", end=True),
        below("who? ", "3"),
        below("When?", "2"),
    ]


def test_merge_proposals_keeps_edges_and_common_end() -> None:
    assert merge_proposals([below("a", "2", end=True), below("b", "3", "2")], "ab") == below("ab", "2", "3")
    assert merge_proposals([below("a", "2", end=True), below("b", "3", end=True)], "ab")["end"]


def test_group_rows_connects_similar_texts_in_any_order() -> None:
    similarity = np.array([[1, 0.8, 0.2, 0.9], [0.8, 1, 0.9, 0.1], [0.2, 0.9, 1, 0.1], [0.9, 0.1, 0.1, 1]])
    assert group_rows(similarity.tolist(), 0.8) == [[0, 3], [1, 2]]
    assert group_rows(similarity.tolist(), 1.0) == [[0], [1], [2], [3]]
    chained = np.array([[1, 0.9, 0.1], [0.9, 1, 0.9], [0.1, 0.9, 1]])
    for order in permutations(range(3)):
        assert group_rows(chained[np.ix_(order, order)].tolist(), 0.8) == [[0, 1, 2]]


def test_sufficient_paths_include_question_alone() -> None:
    assert sufficient_paths(initial_graph("q"), "1") == [("1",)]
    assert sufficient_paths(initial_graph("q"), "") == []
    assert path_steps(("1",)) == ("1",)
    assert path_steps(("1", "2", "4")) == ("2", "4")


def test_shortest_and_longest_follow_breadth_first_search() -> None:
    nodes = add_layer(initial_graph("q"), [below("a", SOURCE), below("b", SOURCE, end=True)])
    nodes = add_layer(nodes, [below("c", "2", end=True)])
    assert shortest_and_longest(nodes) == [("1", "3"), ("1", "2", "4")]
    assert shortest_and_longest(initial_graph("q")) == [("1",)]


def test_path_prefixes_contain_shared_prefix_once() -> None:
    paths: list[Path] = [("1", "2", "4"), ("1", "3", "4"), ("1", "3", "5"), ("1", "6")]
    assert path_prefixes(paths) == [
        [("1", "2"), ("1", "3"), ("1", "6")],
        [("1", "2", "4"), ("1", "3", "4"), ("1", "3", "5")],
    ]
    assert path_prefixes([("1",)]) == [[("1",)]]


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


def test_path_without_a_measured_step_counts_as_certain() -> None:
    verified = {"2": Verification(answer="x", perplexity=1.0, sufficient=True)}
    paths = [("1", "2"), ("1", "3")]
    assert most_certain(paths, verified) == paths
    assert most_certain(paths[::-1], verified) == paths[::-1]
