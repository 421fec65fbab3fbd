"""Bounds of CRP-RAG's cost for any reply, also unreadable ones."""

from collections import Counter
from itertools import cycle
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from hypothesis import example, given
from hypothesis import settings as tests
from hypothesis import strategies as st
from scenes import Replying, crp, passage, resolves, sure

from sleuth.agents.model import Request
from sleuth.graphs.methods.crp_rag.reasoning_graph import SOURCE, Nodes, Path, path_steps
from sleuth.graphs.methods.crp_rag.settings import Settings

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high. Nobody lives there.")

STEPS = st.sampled_from(["a?", "b?", "A? ", "c?", "?", "d e f?", "d e g?", "", " "])
replies = st.fixed_dictionaries(
    {
        "expander": st.lists(st.fixed_dictionaries({"step": STEPS, "final": st.booleans()}), min_size=1, max_size=9),
        "fuser": st.lists(st.fixed_dictionaries({"step": STEPS}), min_size=1, max_size=3),
        "verifier": st.lists(st.booleans(), min_size=1, max_size=5),
        "aggregator": st.lists(st.sampled_from(["It stands in Varn.", "", None]), min_size=1, max_size=3),
        "integrator": st.lists(st.sampled_from(["Varn", "Ostel", "", None]), min_size=1, max_size=3),
    }
)
shapes = st.builds(
    Settings,
    samples=st.sampled_from([1, 2, 4, 20]),
    structure=st.sampled_from(["graph", "tree", "chain"]),
    shortcut=st.booleans(),
    iterate=st.booleans(),
    merge_threshold=st.sampled_from([0.5, 0.85]),
    max_depth=st.integers(1, 3),
    max_width=st.sampled_from([1, 4, 50]),
    max_nodes=st.sampled_from([1, 9, 60]),
    max_paths=st.integers(1, 4),
)


def saying(lines: dict[str, list[Any]]) -> Replying:
    """A model with these replies in turn; None is unreadable."""
    turns = {role: cycle(said) for role, said in lines.items()}

    def reply_to(request: Request) -> Any:
        said = next(turns[request.role])
        if said is None:
            return "I see."
        match request.role:
            case "verifier":
                return sure("Varn", 1.2 if said else 90.0)
            case "aggregator":
                return {"knowledge": said}
            case "integrator":
                return {"answer": said}
        return said

    return Replying(reply_to)


def sufficient_prefixes(nodes: Nodes, state: dict[str, Any]) -> set[Path]:
    """The beginnings of all paths of which every node but the question has sufficient knowledge, walked by hand."""
    good = {key for key, checked in state.get("verified", {}).items() if checked["sufficient"]}

    def walk(path: Path) -> list[Path]:
        after = [key for key in nodes[path[-1]]["next"] if key in good]
        whole = [] if nodes[path[-1]]["next"] else [path]
        return whole + [found for key in after for found in walk((*path, key))]

    whole = [path for path in walk((SOURCE,)) if len(path) > 1 or SOURCE in good]
    return {path[:length] for path in whole for length in range(1 if len(path) == 1 else 2, len(path) + 1)}


def proposed(*steps: tuple[str, bool]) -> list[dict[str, Any]]:
    return [{"step": step, "final": final} for step, final in steps]


FORKED = {
    "expander": proposed(("a?", False), ("a?", False), ("b?", True), ("c?", True)),
    "verifier": [True],
    "aggregator": ["It stands in Varn."],
    "integrator": ["Varn"],
}
"""One step, and after it two ways to the end: both share its result."""


@tests(max_examples=30, deadline=None)
@given(replies, shapes)
@example(FORKED, Settings(shortcut=False))
@pytest.mark.sweep
async def test_crp_rag_calls_are_bounded_by_kind(lines: dict[str, list[Any]], settings: Settings) -> None:
    case = crp(saying(lines), [TOWER], settings, embedder=HashingEmbedder())
    verdict = await case.run("?")
    state, nodes = case.state, case.state["nodes"]

    assert [key for key, node in nodes.items() if not node["prev"]] == [SOURCE]
    assert all(int(after) > int(key) for key, node in nodes.items() for after in node["next"]), "no way leads back"
    assert len(nodes) <= settings.max_nodes + 1 and state.get("depth", 0) <= settings.max_depth

    of_role = Counter(call["role"] for call in state["calls"].values() if not call["repair"])
    tried = Counter(call["node"] for call in state["calls"].values() if not call["repair"])
    assert max(of_role["aggregator"], of_role["verifier"], of_role["fuser"]) <= len(nodes)
    assert of_role["expander"] <= len(nodes) * settings.samples
    prefixes, good = sufficient_prefixes(nodes, state), _contents(nodes, state)
    answers = [request for request in case.model.requests if request.prompt.startswith("integrator/")]
    merges = {request.sampling.seed for request in answers if request.prompt == "integrator/integrate"}
    assert tried["reason"] <= len(prefixes) + (settings.shortcut and SOURCE in state["verified"])
    assert tried["integrate"] == min(1, len(merges))
    for request in answers:
        steps = request.input.get("steps", (request.input.get("step"),))
        assert request.prompt == "integrator/integrate" or set(steps) <= good
    assert verdict["status"] != "answered" or prefixes
    assert verdict["status"] != "refused" or not (prefixes and state.get("notes"))
    assert all(resolves(citation, [TOWER]) for citation in verdict["citations"])


def _contents(nodes: Nodes, state: dict[str, Any]) -> set[str]:
    tried = {nodes[SOURCE]["content"]} if SOURCE in state.get("verified", {}) else set()
    return tried | {nodes[key]["content"] for path in sufficient_prefixes(nodes, state) for key in path_steps(path)}
