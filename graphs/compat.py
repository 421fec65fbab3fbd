"""Nodes of older releases that stored runs name: such runs are shown, forked and resumed."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from sleuth.graphs.methods.crp_rag import path_answers
from sleuth.graphs.methods.crp_rag.graph import State
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, open_sinks


def from_former_node(state: State) -> Literal["try_shortcut", "expand", "retrieve", "select_paths", "__end__"]:
    """Route a run that a release with the nodes `plan` and `answer` of CRP-RAG left before or after one of them."""
    if state.verdict:
        return "__end__"
    if state.halted:
        return "select_paths"
    if not state.nodes:
        return "try_shortcut"
    if any(key not in state.passages for key in state.wave):
        return "retrieve"
    sufficient = path_answers.sufficient_steps(state.nodes, state.verified, state.notes)
    return "expand" if open_sinks(state.nodes) and not (state.wave and SOURCE in sufficient) else "select_paths"


FORMER_NODES: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "crp-rag": {"plan": from_former_node, "answer": from_former_node},
}
"""Each method's former nodes, with a router from the state at such a node, before or after it, to a present one."""
